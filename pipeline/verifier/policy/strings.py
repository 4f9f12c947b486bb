"""The values of string expressions, as far as the source alone shows them."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator

MAX_CHARACTERS = 2_000_000
_MAX_DEPTH = 40
_SAME_TEXT = {"strip", "lstrip", "rstrip"}


class Strings:
    """Resolves constants, simple assignments, `+`, `+=`, f-strings (constant parts), strip and dedent.

    A name stands for all that is ever assigned to it, joined, as no branch is followed.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._values: dict[str, list[ast.expr]] = {}
        self._known: dict[str, str | None] = {}
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        if isinstance(target, ast.Name):
                            self._values.setdefault(target.id, []).append(value)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    self._values.setdefault(name, []).append(value)
                case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
                    self._values.setdefault(name, []).append(value)

    def value(self, node: ast.expr, depth: int = 0) -> str | None:
        """The text, or None when the source does not show it. Unknown parts of an f-string are a space."""
        if depth > _MAX_DEPTH:
            return None
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.JoinedStr(values=parts):
                return "".join(self._part(part) for part in parts)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return _join([self.value(left, depth + 1), self.value(right, depth + 1)])
            case ast.Name(id=name):
                return self._named(name, depth)
            case ast.Call(func=ast.Attribute(attr="dedent") | ast.Name(id="dedent"), args=[inner]):
                indented = self.value(inner, depth + 1)
                return None if indented is None else textwrap.dedent(indented)
            case ast.Call(func=ast.Attribute(value=inner, attr=method), args=[]) if method in _SAME_TEXT:
                return self.value(inner, depth + 1)
        return None

    def values(self, node: ast.expr | None) -> list[str] | None:
        """The texts of a string or of a list of strings; None when any of them is unknown, [] for None."""
        if node is None or (isinstance(node, ast.Constant) and node.value is None):
            return []
        for item in self._items(node):
            node = item
        if isinstance(node, ast.List | ast.Tuple):
            texts = [self.value(element) for element in node.elts]
            return (
                None if any(text is None for text in texts) else [text for text in texts if text is not None]
            )
        text = self.value(node)
        return None if text is None else [text]

    def names(self, node: ast.expr | None) -> list[str] | None:
        """The same, where a dictionary stands for its keys: the `functions` of an extension."""
        if node is not None:
            for item in self._items(node):
                node = item
        if isinstance(node, ast.Dict):
            keys = [self.value(key) if key is not None else None for key in node.keys]
            return None if any(key is None for key in keys) else [key for key in keys if key is not None]
        return self.values(node)

    def _items(self, node: ast.expr) -> Iterator[ast.expr]:
        """The list or dictionary that a name stands for, when it is assigned once."""
        if isinstance(node, ast.Name):
            values = self._values.get(node.id, [])
            if len(values) == 1 and isinstance(values[0], ast.List | ast.Tuple | ast.Dict):
                yield values[0]

    def _named(self, name: str, depth: int) -> str | None:
        if name not in self._known:
            self._known[name] = None  # a name that stands for itself is unknown
            values = self._values.get(name)
            if values:
                self._known[name] = _join([self.value(value, depth + 1) for value in values])
        return self._known[name]

    @staticmethod
    def _part(part: ast.expr) -> str:
        return part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else " "


def _join(parts: list[str | None]) -> str | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or sum(map(len, known)) > MAX_CHARACTERS:
        return None
    return "".join(known)

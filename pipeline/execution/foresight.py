"""Builds that a source shows before it runs: calls of `load_inline` whose arguments stand in it.

Importing a candidate only to learn what it wants built takes a sandbox, and seconds of processor time for
torch. Nearly every candidate says it in plain text: strings at the top of the module, a call that names them.
Such calls are read, and built, without running anything. It is a guess that nothing depends on: the cache is
addressed by content, so a build that the candidate does not ask for is never found, and one that it asks for
and that was not foreseen is made when it asks.
"""

from __future__ import annotations

import ast
import textwrap
from collections import Counter
from collections.abc import Iterator
from typing import Any

from pipeline.contestant import requests
from pipeline.nouns import BuildRequest
from pipeline.nouns.build import MAX_SOURCE_CHARS
from pipeline.pysource import parse

LOADER = "load_inline"
OTHERS = frozenset({"load", "CUDAExtension", "CppExtension", "_compile_kernel"})
"""Other ways to native code: where one is named, not everything can be foreseen."""
_MODULE = "torch.utils.cpp_extension"
_MACHINE = "/usr/"
"""What is below is never the candidate's own."""
_STRIPS = frozenset({"strip", "lstrip", "rstrip"})
_DEEPEST = 200
"""Names that stand for names, at most."""
_MOST_ITEMS = 1000
"""Of a list."""


class _Unseen(Exception):
    """The source does not show this value."""


def foreseen(source: str) -> tuple[BuildRequest, ...] | None:
    """What the source will ask to have built, each once; None where it does not show all of it."""
    tree = parse(source)
    if isinstance(tree, SyntaxError):
        return None
    found: list[BuildRequest] = []
    try:
        values = _Values(tree)
        for call in _calls(tree):
            request = _request(call, values)
            found += [request] if request not in found else []
    except (_Unseen, RecursionError):
        return None
    return tuple(found)


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    """The calls of `load_inline`. Raises _Unseen where it, or another way to native code, is named too."""
    named = {LOADER}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name in OTHERS and (node.module or "").startswith("torch"):
                    raise _Unseen
                if alias.name == LOADER and node.module == _MODULE:
                    named.add(alias.asname or alias.name)
        elif isinstance(node, ast.Attribute) and node.attr in OTHERS:
            raise _Unseen
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_loader(node.func, named)]
    mentions = sum(_is_loader(node, named) for node in ast.walk(tree))
    if mentions != len(calls):
        raise _Unseen
    return iter(calls)


def _is_loader(node: ast.AST, named: set[str]) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == LOADER
    return isinstance(node, ast.Name) and node.id in named


def _request(call: ast.Call, values: _Values) -> BuildRequest:
    """Raises _Unseen."""
    if any(keyword.arg is None for keyword in call.keywords):
        raise _Unseen
    arguments = [values.plain(argument) for argument in call.args]
    options = {keyword.arg: values.plain(keyword.value) for keyword in call.keywords if keyword.arg}
    try:
        found = BuildRequest.model_validate(requests.load_inline(*arguments, **options))
        found.model_dump_json().encode()
    except (TypeError, RuntimeError, ValueError):  # the candidate is told when it makes the call
        raise _Unseen from None
    if any(not path.strip().startswith(_MACHINE) for path in found.extra_include_paths):
        raise _Unseen  # which headers of its own lie there when it asks is not in the source
    return found


class _Values:
    """Values of expressions, where constants and names that are bound once, at the top, make them up."""

    def __init__(self, tree: ast.Module) -> None:
        bound = Counter(_bound(tree))
        assigned = dict(_assigned(tree))
        self._expressions = {name: value for name, value in assigned.items() if bound[name] == 1}
        self._known: dict[str, Any] = {}
        self._depth = self._made = 0

    def plain(self, node: ast.expr) -> Any:
        """A value such as `load_inline` takes: text, a list or dictionary of texts, a truth value, None."""
        value = self._value(node)
        items = (
            value if isinstance(value, list) else [*value, *value.values()] if isinstance(value, dict) else []
        )
        if all(isinstance(item, str) for item in items):
            return value
        raise _Unseen

    def _value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=str() | int() | None as value):
                return value
            case ast.Name(id=name):
                return self._named(name)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [self._value(item) for item in items]
            case ast.Dict(keys=keys, values=items):
                return {self._text(key): self._value(item) for key, item in zip(keys, items, strict=True)}
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._sum(self._value(left), self._value(right))
            case ast.JoinedStr(values=parts):
                return self._new("".join(self._part(part) for part in parts))
            case ast.Call(func=ast.Attribute(value=inner, attr=method), args=[], keywords=[]) if (
                method in _STRIPS
            ):
                return self._new(getattr(self._text(inner), method)())
            case ast.Call(
                func=ast.Name(id="dedent") | ast.Attribute(value=ast.Name(id="textwrap"), attr="dedent"),
                args=[inner],
                keywords=[],
            ):
                return self._new(textwrap.dedent(self._text(inner)))
        raise _Unseen

    def _named(self, name: str) -> Any:
        if name not in self._known:
            expression = self._expressions.get(name)
            self._depth += 1
            if expression is None or self._depth > _DEEPEST:  # a name that stands for itself is never known
                raise _Unseen
            self._known[name] = self._value(expression)
            self._depth -= 1
        return self._known[name]

    def _text(self, node: ast.expr | None) -> str:
        value = self._value(node) if node is not None else None
        if isinstance(value, str):
            return value
        raise _Unseen

    def _part(self, part: ast.expr) -> str:
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            return part.value
        if isinstance(part, ast.FormattedValue) and part.conversion == -1 and part.format_spec is None:
            value = self._value(part.value)
            if isinstance(value, str) or (isinstance(value, int) and abs(value) < 1 << 63):
                return str(value)
        raise _Unseen

    def _sum(self, left: Any, right: Any) -> Any:
        if isinstance(left, str) and isinstance(right, str):
            return self._new(left + right)
        if isinstance(left, list) and isinstance(right, list) and len(left) + len(right) <= _MOST_ITEMS:
            return left + right
        raise _Unseen

    def _new(self, text: str) -> str:
        """A text that does not stand in the source itself: all of them are bounded, as sums of sums grow."""
        self._made += len(text)
        if self._made > MAX_SOURCE_CHARS:
            raise _Unseen
        return text


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Names that a statement of the module's own assigns a single expression to."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value


def _bound(tree: ast.Module) -> Iterator[str]:
    """Every name as often as anything in the module binds it, in whatever scope."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.alias(name=name, asname=alias):
                yield alias or name.partition(".")[0]
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                yield name
            case ast.MatchMapping(rest=str(name)):
                yield name

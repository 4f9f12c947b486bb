"""Conditions that parameters have to meet: `TILE * TILE * 4 <= 49152`. Read and computed, never executed."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from kernelproof.errors import UsageError

LONGEST = 200
"""Characters of a condition. So its numbers stay small as well."""
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.LtE: operator.le,
    ast.Lt: operator.lt,
    ast.GtE: operator.ge,
    ast.Gt: operator.gt,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


@dataclass(frozen=True)
class Limit:
    """One condition."""

    text: str
    _tree: ast.Compare

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether these values meet it. A division by zero does not."""
        try:
            sides = [_value(side, values) for side in (self._tree.left, *self._tree.comparators)]
        except ZeroDivisionError:
            return False
        pairs = zip(self._tree.ops, sides, sides[1:], strict=False)
        return all(_COMPARISONS[type(op)](left, right) for op, left, right in pairs)


def read_limit(text: str, names: Collection[str], line: int) -> Limit:
    """The condition that a comment states. Raises UsageError that says what may stand there."""

    def refuse(why: str) -> UsageError:
        return UsageError(f"line {line}: the condition {text!r:.80} {why}")

    if len(text) > LONGEST:
        raise refuse(f"is longer than {LONGEST} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise refuse("cannot be read; write for instance: TILE * TILE * 4 <= 49152") from None
    if not isinstance(tree, ast.Compare):
        raise refuse("compares nothing; write for instance: TILE * TILE * 4 <= 49152")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in names:
            raise refuse(f"names {node.id}, which is no parameter; there are {', '.join(names)}")
        if not _is_allowed(node):
            raise refuse("may hold whole numbers, parameters, + - * // % and comparisons, and nothing else")
    return Limit(text.strip(), tree)


def _is_allowed(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    plain = (ast.Compare, ast.BinOp, ast.Name, ast.Load)
    return isinstance(node, (*plain, *_OPERATORS, *_COMPARISONS))


def _value(node: ast.expr, values: Mapping[str, int]) -> int:
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_value(node.left, values), _value(node.right, values))
    if isinstance(node, ast.Name):
        return values[node.id]
    assert isinstance(node, ast.Constant) and isinstance(node.value, int)
    return node.value

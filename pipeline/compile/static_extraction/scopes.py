"""What names stand for while a source is read: scopes, and values that are no plain text or number."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from kernelproof.compile.static_extraction.strings import Unreadable

MOST_WAYS = 8
"""Values that one expression may have, by the branches taken; with more it is unknown."""


class _Mark:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


UNKNOWN = _Mark("unknown")
"""What the source does not show."""
BUILT = _Mark("built")
"""What `load_inline` gives: something, and not None."""


@dataclass(frozen=True)
class Ref:
    """Something of another module, by its full name: `torch.cuda.is_available`."""

    path: str


@dataclass(frozen=True)
class Either:
    """One of several values, by a branch that the source does not decide."""

    ways: tuple[Any, ...]


@dataclass(eq=False)
class Scope:
    """Names of a module, a class, an instance or a call, with their values."""

    parent: Scope | None = None
    names: dict[str, Any] = field(default_factory=dict)
    elsewhere: dict[str, Scope] = field(default_factory=dict)
    """Names that are declared `global` or `nonlocal`."""

    def find(self, name: str) -> Any:
        """The value of a name here or further out. Raises KeyError."""
        scope: Scope | None = self.elsewhere.get(name, self)
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        raise KeyError(name)

    def bind(self, name: str, value: Any) -> None:
        """Gives a name its value."""
        self.elsewhere.get(name, self).names[name] = value


@dataclass(frozen=True)
class Given:
    """Arguments of a call."""

    arguments: tuple[Any, ...] = ()
    named: dict[str, Any] = field(default_factory=dict)
    complete: bool = True
    """Whether these are all: False where something unknown is unpacked."""


@dataclass(eq=False)
class Function:
    """A function, lambda or method, with the values of its defaults."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope
    defaults: list[Any]
    named_defaults: list[Any]
    owner: Class | None = None
    kinds: frozenset[str] = frozenset()
    """Names of its decorators."""


@dataclass(eq=False)
class Class(Scope):
    """A class of the source's own; its names are what its body binds."""

    bases: tuple[Any, ...] = ()
    name: str = ""

    def member(self, name: str) -> Any:
        """What instances see under a name. Raises KeyError."""
        if name in self.names:
            return self.names[name]
        for base in self.bases:
            if isinstance(base, Class) and base is not self:
                return base.member(name)
        raise KeyError(name)


@dataclass(eq=False)
class Instance(Scope):
    """An object of such a class, with the attributes that its methods set."""

    cls: Class | None = None


@dataclass(frozen=True)
class Bound:
    """A method of an object."""

    function: Function
    receiver: Instance | Class


def ways_of(value: Any) -> tuple[Any, ...]:
    """All values that it may be."""
    return value.ways if isinstance(value, Either) else (value,)


def either(values: Iterable[Any]) -> Any:
    """One of these; unknown where they are too many."""
    found: list[Any] = []
    for value in values:
        for way in ways_of(value):
            if not any(way is known or _equal(way, known) for known in found):
                found.append(way)
    if not found or len(found) > MOST_WAYS:
        return UNKNOWN
    return found[0] if len(found) == 1 else Either(tuple(found))


def _equal(one: Any, other: Any) -> bool:
    return type(one) is type(other) and not isinstance(one, Scope | Function) and bool(one == other)


def spread(operation: Callable[..., Any], *values: Any) -> Any:
    """What the operation gives for all combinations of what the values may be."""
    combinations = list(product(*map(ways_of, values)))[: MOST_WAYS + 1]
    if len(combinations) > MOST_WAYS:
        return UNKNOWN
    made = []
    for combination in combinations:
        try:
            made.append(UNKNOWN if UNKNOWN in combination else operation(*combination))
        except Unreadable:
            made.append(UNKNOWN)
    return either(made)


def truth(value: Any) -> bool | None:
    """Whether it is true; None where that is unknown."""
    if isinstance(value, Either):
        found = {truth(way) for way in value.ways}
        return found.pop() if len(found) == 1 else None
    if value is BUILT or isinstance(value, Function | Class | Instance | Bound):
        return True
    if isinstance(value, str | int | float | list | tuple | dict | bytes | None):
        return bool(value)
    return None


def compared(op: ast.cmpop, left: Any, right: Any) -> Any:
    """A comparison of two values. Raises Unreadable."""
    nothing = left is None or right is None
    if isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq) and nothing:
        if isinstance(left, Ref) or isinstance(right, Ref):
            raise Unreadable
        same = left is right
        return same if isinstance(op, ast.Is | ast.Eq) else not same
    plain = str | int | float
    if isinstance(op, ast.In | ast.NotIn) and isinstance(right, str | list | tuple | dict):
        if not isinstance(left, plain) or (isinstance(right, str) and not isinstance(left, str)):
            raise Unreadable
        return (left in right) is isinstance(op, ast.In)
    if isinstance(left, list | tuple) and type(left) is type(right) and not (_hides(left) or _hides(right)):
        pass
    elif not (isinstance(left, plain) and isinstance(right, plain)):
        raise Unreadable
    try:
        known: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
            ast.Eq: lambda a, b: a == b,
            ast.NotEq: lambda a, b: a != b,
            ast.Lt: lambda a, b: a < b,
            ast.LtE: lambda a, b: a <= b,
            ast.Gt: lambda a, b: a > b,
            ast.GtE: lambda a, b: a >= b,
        }
        return known[type(op)](left, right)
    except (TypeError, KeyError):
        raise Unreadable from None


def _hides(items: Any) -> bool:
    return not all(isinstance(item, str | int | float) for item in items)


def attribute(value: Any, name: str) -> Any:
    """`value.name`, where it is no method of plain values. Raises Unreadable."""
    if isinstance(value, Ref):
        return Ref(f"{value.path}.{name}")
    if isinstance(value, Instance):
        if name in value.names:
            return value.names[name]
        try:
            found = value.cls.member(name) if value.cls is not None else UNKNOWN
        except KeyError:
            return UNKNOWN
        if isinstance(found, Function) and "staticmethod" not in found.kinds:
            return Bound(found, value.cls if "classmethod" in found.kinds and value.cls else value)
        return found
    if isinstance(value, Class):
        try:
            found = value.member(name)
        except KeyError:
            return UNKNOWN
        if isinstance(found, Function) and "classmethod" in found.kinds:
            return Bound(found, value)
        return found
    raise Unreadable


def over(operation: Callable[[list[Any], dict[str, Any]], Any], given: Given) -> Any:
    """The results of the operation for all values that the arguments may have."""
    count = len(given.arguments)

    def once(*ways: Any) -> Any:
        return operation(list(ways[:count]), dict(zip(given.named, ways[count:], strict=True)))

    return spread(once, *given.arguments, *given.named.values())

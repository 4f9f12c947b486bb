"""Values of expressions, as far as a source shows them; the calls in them are noted on the way."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kernelproof.compile.static_extraction import strings
from kernelproof.compile.static_extraction.scopes import (
    BUILT,
    UNKNOWN,
    Bound,
    Class,
    Function,
    Given,
    Instance,
    Ref,
    Scope,
    attribute,
    compared,
    either,
    over,
    spread,
    truth,
    ways_of,
)
from kernelproof.compile.static_extraction.strings import Unreadable
from kernelproof.types.build import MAX_SOURCE_CHARS

MOST_STEPS = 30_000
"""Expressions and statements of one source that are looked at."""
LOADER = "load_inline"
_BUILTINS = frozenset(
    (
        *("bool", "dict", "enumerate", "float", "getattr", "int", "len", "list", "max", "min", "print"),
        *("range", "reversed", "sorted", "str", "super", "textwrap", "tuple", "zip"),
    )
)
_CHANGES = frozenset({"append", "extend", "update", "insert", "setdefault", "pop", "clear", "remove"})


class TooMuch(Exception):
    """The source is too long to read, or grows without end."""


class Expressions(ABC):
    """Reads expressions. The reader of statements says what a call does."""

    def __init__(self, gpu: bool, capability: tuple[int, int] | None) -> None:
        """`gpu`: what `torch.cuda.is_available()` says where it runs, with a GPU of that `capability`."""
        self._gpu, self._capability = gpu, capability
        self._steps = self._made = 0
        self.loader_calls: set[int] = set()
        """Ids of the expressions that were called as a loader."""

    # What a reader of statements adds.

    @abstractmethod
    def asked(self, given: Given) -> None:
        """`load_inline` is called so."""

    @abstractmethod
    def invoke(self, function: Function, receiver: Any, given: Given) -> Any:
        """The value of a call of a function of the source's own."""

    @abstractmethod
    def make(self, cls: Class, given: Given) -> Any:
        """An object of a class of the source's own."""

    @abstractmethod
    def passed_over(self, *nodes: ast.AST) -> None:
        """These parts of the source do not run."""

    def step(self, count: int = 1) -> None:
        """Raises TooMuch."""
        self._steps += count
        if self._steps > MOST_STEPS:
            raise TooMuch

    def _charge(self, *values: Any) -> None:
        """A step on a long text counts as more. Raises TooMuch."""
        self.step(sum(len(way) for value in values for way in ways_of(value) if isinstance(way, str)) // 1000)

    def value(self, node: ast.expr, scope: Scope) -> Any:
        """What the expression gives, UNKNOWN where the source does not show it. Raises TooMuch."""
        self.step()
        try:
            found = self._value(node, scope)
        except Unreadable:
            found = UNKNOWN
        for way in ways_of(found):
            if isinstance(way, str) and not isinstance(node, ast.Constant | ast.Name | ast.Attribute):
                self._made += len(way)
        if self._made > 4 * MAX_SOURCE_CHARS:
            raise TooMuch
        return found

    def _value(self, node: ast.expr, scope: Scope) -> Any:
        read = getattr(self, f"_{type(node).__name__.lower()}", None)
        if read is not None:
            return read(node, scope)
        for child in ast.iter_child_nodes(node):  # it may hold calls all the same
            if isinstance(child, ast.expr):
                self.value(child, scope)
        return UNKNOWN

    def _constant(self, node: ast.Constant, scope: Scope) -> Any:
        known = isinstance(node.value, str | int | float | bytes | None)
        return node.value if known else UNKNOWN

    def _name(self, node: ast.Name, scope: Scope) -> Any:
        try:
            return scope.find(node.id)
        except KeyError:
            return Ref(f"builtins.{node.id}") if node.id in _BUILTINS else UNKNOWN

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Any:
        holder = self.value(node.value, scope)
        if node.attr == LOADER and not isinstance(holder, Instance | Class):
            return Ref(LOADER)
        return spread(lambda way: self._property(attribute(way, node.attr)), holder)

    def _property(self, found: Any) -> Any:
        kinds = {"property", "cached_property"}
        if isinstance(found, Bound) and found.function.kinds & kinds:
            return self.invoke(found.function, found.receiver, Given())
        return found

    def _list(self, node: ast.List | ast.Tuple | ast.Set, scope: Scope) -> Any:
        items, all_known = self._items(node.elts, scope)
        if not all_known:
            return UNKNOWN
        kind = tuple if isinstance(node, ast.Tuple) else list
        return self._gathered(lambda *ways: kind(ways), items)

    _tuple = _set = _list

    def _gathered(self, build: Callable[..., Any], items: Sequence[Any]) -> Any:
        """A container of these; where one of them is unknown it holds that."""
        if all(len(ways_of(item)) == 1 for item in items):
            return build(*items)
        return spread(build, *items)

    def _items(self, nodes: Sequence[ast.expr], scope: Scope) -> tuple[list[Any], bool]:
        """Values of arguments or elements, those with a star unpacked; whether all of these were known."""
        items: list[Any] = []
        all_known = True
        for node in nodes:
            if isinstance(node, ast.Starred):
                inner = self.value(node.value, scope)
                all_known &= isinstance(inner, list | tuple)
                items += inner if isinstance(inner, list | tuple) else []
            else:
                items.append(self.value(node, scope))
        if len(items) > strings.MAX_ITEMS:
            raise Unreadable
        return items, all_known

    def _dict(self, node: ast.Dict, scope: Scope) -> Any:
        keys: list[Any] = []
        values: list[Any] = []
        for key, item in zip(node.keys, node.values, strict=True):
            value = self.value(item, scope)
            if key is not None:
                keys.append(self.value(key, scope))
                values.append(value)
            elif isinstance(value, dict):
                keys += value
                values += value.values()
            else:
                return UNKNOWN
        if not all(isinstance(key, str | int | float | None) for key in keys):
            return UNKNOWN
        return self._gathered(lambda *ways: dict(zip(keys, ways, strict=True)), values)

    def _binop(self, node: ast.BinOp, scope: Scope) -> Any:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        return spread(lambda one, other: strings.binary(node.op, one, other), left, right)

    def _unaryop(self, node: ast.UnaryOp, scope: Scope) -> Any:
        value = self.value(node.operand, scope)
        if isinstance(node.op, ast.Not):
            known = truth(value)
            return UNKNOWN if known is None else not known
        if isinstance(node.op, ast.USub) and isinstance(value, int | float):
            return -value
        return UNKNOWN

    def _boolop(self, node: ast.BoolOp, scope: Scope) -> Any:
        wanted = isinstance(node.op, ast.Or)
        unknown = False
        for number, item in enumerate(node.values):
            value = self.value(item, scope)
            known = truth(value)
            unknown |= known is None
            if known is wanted:
                self.passed_over(*node.values[number + 1 :])
                return value if not unknown else (UNKNOWN if not isinstance(value, bool) else value)
        return UNKNOWN if unknown else value

    def _compare(self, node: ast.Compare, scope: Scope) -> Any:
        values = [self.value(item, scope) for item in (node.left, *node.comparators)]
        if len(node.ops) != 1:
            return UNKNOWN
        self._charge(*values)
        return spread(lambda one, other: compared(node.ops[0], one, other), *values)

    def _ifexp(self, node: ast.IfExp, scope: Scope) -> Any:
        known = truth(self.value(node.test, scope))
        if known is None:
            return either((self.value(node.body, scope), self.value(node.orelse, scope)))
        self.passed_over(node.orelse if known else node.body)
        return self.value(node.body if known else node.orelse, scope)

    def _joinedstr(self, node: ast.JoinedStr, scope: Scope) -> Any:
        parts = [self.value(part, scope) for part in node.values]
        return spread(lambda *ways: "".join(ways), *parts)

    def _formattedvalue(self, node: ast.FormattedValue, scope: Scope) -> Any:
        value = self.value(node.value, scope)
        spec = self.value(node.format_spec, scope) if node.format_spec is not None else ""
        if node.conversion not in (-1, ord("s")):
            return UNKNOWN
        return spread(strings.formatted, value, spec)

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Any:
        holder = self.value(node.value, scope)
        if isinstance(node.slice, ast.Slice):
            ends = [
                self.value(end, scope) if end is not None else None
                for end in (node.slice.lower, node.slice.upper, node.slice.step)
            ]
            if not all(isinstance(end, int | None) for end in ends):
                return UNKNOWN
            return spread(lambda way: strings.item(way, slice(*ends)), holder)
        return spread(strings.item, holder, self.value(node.slice, scope))

    def _namedexpr(self, node: ast.NamedExpr, scope: Scope) -> Any:
        value = self.value(node.value, scope)
        scope.bind(node.target.id, value)
        return value

    def _lambda(self, node: ast.Lambda, scope: Scope) -> Any:
        return self.function_of(node, scope)

    def function_of(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: Scope
    ) -> Function:
        """The function that a definition makes, its defaults read now."""
        defaults = [self.value(each, scope) for each in node.args.defaults]
        named = [self.value(each, scope) if each is not None else UNKNOWN for each in node.args.kw_defaults]
        return Function(node, scope, defaults, named)

    def _listcomp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope) -> Any:
        items = [self.value(node.elt, inner) for inner in self._rounds(node.generators, Scope(scope))]
        return self._gathered(lambda *ways: list(ways), items)

    _setcomp = _generatorexp = _listcomp

    def _dictcomp(self, node: ast.DictComp, scope: Scope) -> Any:
        made = {}
        for inner in self._rounds(node.generators, Scope(scope)):
            key, value = self.value(node.key, inner), self.value(node.value, inner)
            if not isinstance(key, str | int):
                return UNKNOWN
            made[key] = value
        return made

    def _rounds(self, generators: Sequence[ast.comprehension], scope: Scope) -> Iterator[Scope]:
        """The scopes of a comprehension's rounds. Raises Unreadable after one round of unknown ones."""
        if not generators:
            yield scope
            return
        first, *rest = generators
        items = self.value(first.iter, scope)
        known = isinstance(items, list | tuple | dict)
        for item in list(items) if known else [UNKNOWN]:
            self.step()
            self.assign(first.target, item, scope)
            tests = [truth(self.value(test, scope)) for test in first.ifs]
            if False in tests:
                continue
            yield from self._rounds(rest, scope)
            if None in tests:
                raise Unreadable
        if not known:
            raise Unreadable

    def assign(self, target: ast.expr, value: Any, scope: Scope) -> None:
        """Binds a target to a value."""
        match target:
            case ast.Name(id=name):
                scope.bind(name, value)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                fits = isinstance(value, list | tuple) and len(value) == len(targets)
                for number, each in enumerate(targets):
                    self.assign(each, value[number] if fits else UNKNOWN, scope)
            case ast.Starred(value=inner):
                self.assign(inner, UNKNOWN, scope)
            case ast.Attribute(value=holder, attr=name):
                for way in ways_of(self.value(holder, scope)):
                    if isinstance(way, Instance | Class):
                        way.names[name] = value
            case ast.Subscript(value=holder, slice=key):
                kept, place = self.value(holder, scope), self.value(key, scope)
                if isinstance(holder, ast.Name | ast.Attribute):
                    fits = isinstance(kept, dict) and isinstance(place, str | int)
                    self.assign(holder, {**kept, place: value} if fits else UNKNOWN, scope)

    # Calls.

    def _call(self, node: ast.Call, scope: Scope) -> Any:
        target = self._target(node.func, scope)
        given = self._given(node, scope)
        if isinstance(node.func, ast.Attribute) and self._grows(node.func, given, scope):
            return None
        made = []
        for way in ways_of(target):
            try:
                made.append(self._called(node, way, given))
            except Unreadable:
                made.append(UNKNOWN)
        return either(made)

    def _given(self, node: ast.Call, scope: Scope) -> Given:
        arguments, complete = self._items(node.args, scope)
        named: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value, scope)
            if keyword.arg is not None:
                named[keyword.arg] = value
            elif isinstance(value, dict) and all(isinstance(key, str) for key in value):
                named |= value
            else:
                complete = False
        return Given(tuple(arguments), named, complete)

    def _target(self, node: ast.expr, scope: Scope) -> Any:
        """What is called; of a plain value's method it is the value."""
        if isinstance(node, ast.Attribute):
            holder = self.value(node.value, scope)
            if all(isinstance(way, str | bytes | list | tuple | dict) for way in ways_of(holder)):
                return holder
        return self.value(node, scope)

    def _called(self, node: ast.Call, target: Any, given: Given) -> Any:
        """Raises Unreadable."""
        if isinstance(target, Ref) and target.path.rpartition(".")[2] == LOADER:
            self.loader_calls.add(id(node.func))
            self.asked(given)
            return BUILT
        if isinstance(target, Function):
            return self.invoke(target, None, given)
        if isinstance(target, Bound):
            return self.invoke(target.function, target.receiver, given)
        if isinstance(target, Class):
            return self.make(target, given)
        if not given.complete:
            raise Unreadable
        self._charge(target, *given.arguments, *given.named.values())
        if isinstance(target, Ref):
            return self._of_another(target.path, given)
        if not isinstance(node.func, ast.Attribute):
            raise Unreadable
        method = node.func.attr
        if isinstance(target, strings.Digest) and method == "hexdigest":
            return str(target)
        return over(lambda arguments, named: strings.method(target, method, arguments, named), given)

    def _of_another(self, path: str, given: Given) -> Any:
        """A call of something that is not the source's own. Raises Unreadable."""
        first, second = (*given.arguments, None, None)[:2]
        if path == "torch.cuda.is_available":
            return self._gpu
        if path == "torch.cuda.get_device_capability" and self._capability is not None:
            return tuple(self._capability)
        if path == "builtins.getattr" and isinstance(second, str):
            return Ref(LOADER) if second == LOADER else spread(lambda way: attribute(way, second), first)
        if path == "builtins.sorted" and not given.named and isinstance(first, list):
            return sorted(first) if all(isinstance(each, str) for each in first) else UNKNOWN
        return over(lambda arguments, named: strings.function(path, arguments, named), given)

    def _grows(self, func: ast.Attribute, given: Given, scope: Scope) -> bool:
        """Whether this is `append`, `extend` or `update` of a list or dictionary that has a name: it is then
        bound to the longer one."""
        if func.attr not in _CHANGES or not isinstance(func.value, ast.Name | ast.Attribute):
            return False
        kept = self.value(func.value, scope)
        if not all(isinstance(way, list | dict) for way in ways_of(kept)):
            return False
        grown: Any = UNKNOWN
        if len(given.arguments) + bool(given.named) == 1:
            more = given.arguments[0] if given.arguments else given.named
            grown = spread(lambda one, other: strings.longer(func.attr, one, other), kept, more)
        self.assign(func.value, grown, scope)
        return True

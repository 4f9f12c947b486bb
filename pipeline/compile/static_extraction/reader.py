"""A source read from its first statement to its last, as Python would run it: branches that nothing decides
are read one after the other, and what they bind is then one of several values."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum, auto
from types import MappingProxyType
from typing import Any

from kernelproof.compile.static_extraction.expressions import LOADER, Expressions, TooMuch
from kernelproof.compile.static_extraction.scopes import (
    UNKNOWN,
    Class,
    Function,
    Given,
    Instance,
    Ref,
    Scope,
    either,
    truth,
)
from kernelproof.pysource import is_main_guard

_DEEPEST = 20
"""Calls within calls."""
_MOST_SCOPES = 2000
Snapshot = dict[Scope, dict[str, Any]]


class Flow(Enum):
    """How a block of statements ends."""

    ON = auto()
    LEFT = auto()
    """Returned, or raised."""
    BROKEN = auto()
    """`break` or `continue`."""


class Reader(Expressions):
    """Reads one module. `asked` gets every call of a loader."""

    def __init__(self, tree: ast.Module, *, gpu: bool, capability: tuple[int, int] | None) -> None:
        super().__init__(gpu, capability)
        self._tree = tree
        self._module = Scope()
        self._scopes: list[Scope] = [self._module]
        self._functions: list[Function] = []
        self._done: set[int] = set()
        self._stack: list[ast.AST] = []
        self._returns: list[list[Any]] = []
        self._objects: dict[int, Instance] = {}
        self.unsure = 0
        """Above 0 while what is read may not run, or may be run to see it fail."""
        self.muted = 0
        """Above 0 while what is read runs only where something before it fails."""

    def read_module(self, names: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Reads the module's statements; these names are then bound to these values."""
        self.block(self._tree.body, self._module)
        self._module.names |= names

    def call(self, name: str) -> Any:
        """What the module's function gives that has this name, without arguments."""
        function = self._module.names.get(name)
        if not isinstance(function, Function):
            return UNKNOWN
        return self.invoke(function, None, Given())

    def read(self, model: str, arguments: Sequence[Any] | None) -> None:
        """Reads the module, then the construction of its class `model`, then what nothing has called."""
        self.read_module()
        cls = self._module.names.get(model)
        if isinstance(cls, Class):
            self.make(cls, Given(tuple(arguments or ()), complete=arguments is not None))
        self.unsure += 1
        number = 0
        while number < len(self._functions):  # reading one may define others
            function = self._functions[number]
            number += 1
            if id(function.node) not in self._done:
                self.invoke(function, self._receiver(function), Given(complete=False))

    def _receiver(self, function: Function) -> Any:
        if function.owner is None or "staticmethod" in function.kinds:
            return None
        if "classmethod" in function.kinds:
            return function.owner
        return self._objects.get(id(function.owner)) or self.make(function.owner, Given(complete=False))

    # Calling.

    def make(self, cls: Class, given: Given) -> Any:
        made = Instance(cls=cls)
        self._keep(made)
        self._objects.setdefault(id(cls), made)
        try:
            constructor = cls.member("__init__")
        except KeyError:
            return made
        if isinstance(constructor, Function):
            self.invoke(constructor, made, given)
        return made

    def invoke(self, function: Function, receiver: Any, given: Given) -> Any:
        node = function.node
        self._done.add(id(node))
        if node in self._stack or len(self._stack) > _DEEPEST:
            return UNKNOWN
        frame = Scope(function.scope)
        self._keep(frame)
        _bind(frame, function, receiver, given)
        self._stack.append(node)
        self._returns.append([])
        try:
            if isinstance(node, ast.Lambda):
                return self.value(node.body, frame)
            ended = self.block(node.body, frame)
            found = self._returns[-1]
            return either(found if ended is Flow.LEFT else [*found, None])
        finally:
            self._returns.pop()
            self._stack.pop()

    def _keep(self, scope: Scope) -> None:
        self._scopes.append(scope)
        if len(self._scopes) > _MOST_SCOPES:
            raise TooMuch

    # Statements.

    def block(self, body: Sequence[ast.stmt], scope: Scope) -> Flow:
        """Reads statements until one leaves."""
        for number, statement in enumerate(body):
            self.step()
            flow = self._statement(statement, scope)
            if flow is not Flow.ON:
                self.passed_over(*body[number + 1 :])
                return flow
        return Flow.ON

    def _statement(self, node: ast.stmt, scope: Scope) -> Flow:
        match node:
            case ast.Return(value=value):
                found = self.value(value, scope) if value is not None else None
                if self._returns:
                    self._returns[-1].append(found)
                return Flow.LEFT
            case ast.Raise():
                return Flow.LEFT
            case ast.Break() | ast.Continue():
                return Flow.BROKEN
            case ast.If():
                return self._if(node, scope)
            case ast.For() | ast.AsyncFor():
                return self._for(node, scope)
            case ast.While(test=test, body=body, orelse=rest):
                self.value(test, scope)
                return self._maybe(lambda: self.block([*body, *rest], scope))
            case ast.Try():
                return self._try(node, scope)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                for item in items:
                    value = self.value(item.context_expr, scope)
                    if item.optional_vars is not None:
                        entered = value if isinstance(value, Instance) else UNKNOWN
                        self.assign(item.optional_vars, entered, scope)
                return self.block(body, scope)
            case ast.Match(subject=subject, cases=cases):
                self.value(subject, scope)
                return self._one_of([lambda c=case: self.block(c.body, scope) for case in cases])  # type: ignore[misc]
        self._simple(node, scope)
        return Flow.ON

    def _simple(self, node: ast.stmt, scope: Scope) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                found = self.value(value, scope)
                for target in targets:
                    self.assign(target, found, scope)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign(target, self.value(value, scope), scope)
            case ast.AugAssign(target=ast.Name() | ast.Attribute() as target, op=op, value=value):
                before = target.__class__(**{**_fields(target), "ctx": ast.Load()})
                self.assign(target, self.value(ast.BinOp(before, op, value), scope), scope)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._define(node, scope)
            case ast.ClassDef():
                self._define_class(node, scope)
            case ast.Import(names=names):
                for alias in names:
                    whole = alias.name if alias.asname else alias.name.partition(".")[0]
                    scope.bind(alias.asname or whole, Ref(whole))
            case ast.ImportFrom(names=names):
                for alias in names:
                    path = LOADER if alias.name == LOADER else f"{node.module}.{alias.name}"
                    scope.bind(alias.asname or alias.name, Ref(path))
            case ast.Global(names=declared):
                scope.elsewhere |= dict.fromkeys(declared, self._module)
            case ast.Nonlocal(names=declared):
                for name in declared:
                    outer = scope.parent
                    while outer is not None and name not in outer.names:
                        outer = outer.parent
                    scope.elsewhere[name] = outer or self._module
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.value(child, scope)
                        if isinstance(node, ast.Delete):
                            self.assign(child, UNKNOWN, scope)

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        inner = scope
        while isinstance(inner, Class) and inner.parent is not None:
            inner = inner.parent
        made = self.function_of(node, scope)
        made.scope = inner
        made.owner = scope if isinstance(scope, Class) else None
        made.kinds = frozenset(map(_last_name, node.decorator_list))
        for each in node.decorator_list:
            self.value(each, scope)
        self._functions.append(made)
        scope.bind(node.name, made)

    def _define_class(self, node: ast.ClassDef, scope: Scope) -> None:
        bases = tuple(self.value(base, scope) for base in node.bases)
        made = Class(parent=scope, bases=bases, name=node.name)
        self._keep(made)
        self.block(node.body, made)
        scope.bind(node.name, made)

    def _if(self, node: ast.If, scope: Scope) -> Flow:
        if is_main_guard(node):
            self.passed_over(*node.body)
            return self.block(node.orelse, scope)
        known = truth(self.value(node.test, scope))
        if known is None:
            return self._one_of(
                [lambda: self.block(node.body, scope), lambda: self.block(node.orelse, scope)]
            )
        self.passed_over(*(node.orelse if known else node.body))
        return self.block(node.body if known else node.orelse, scope)

    def _for(self, node: ast.For | ast.AsyncFor, scope: Scope) -> Flow:
        items = self.value(node.iter, scope)
        if not isinstance(items, list | tuple | dict):

            def once() -> Flow:
                self.assign(node.target, UNKNOWN, scope)
                return self.block(node.body, scope)

            self._maybe(once)
            return self.block(node.orelse, scope)
        for item in items:
            self.step()
            self.assign(node.target, item, scope)
            flow = self.block(node.body, scope)
            if flow is Flow.LEFT:
                return flow
            if flow is Flow.BROKEN and any(isinstance(each, ast.Break) for each in ast.walk(node)):
                return Flow.ON
        return self.block(node.orelse, scope)

    def _try(self, node: ast.Try, scope: Scope) -> Flow:
        before, calls = self._snapshot(), len(self.loader_calls)
        with self._unsure():
            flow = self.block([*node.body, *node.orelse], scope)
        after = self._snapshot()
        asked = len(self.loader_calls) > calls
        ends = [] if flow is not Flow.ON else [after]
        for handler in node.handlers:
            self._restore(before)
            if handler.name is not None:
                scope.bind(handler.name, UNKNOWN)
            self.muted += asked  # the way of a failing build is read when one fails
            with self._unsure():
                other = self.block(handler.body, scope)
            self.muted -= asked
            if other is Flow.ON and not asked:
                ends.append(self._snapshot())
        if asked or not ends:
            self._restore(after)
        else:
            self._merge(ends)
            flow = Flow.ON
        ended = self.block(node.finalbody, scope)
        return flow if ended is Flow.ON else ended

    # Branches.

    def _maybe(self, way: Callable[[], Flow]) -> Flow:
        return self._one_of([way, lambda: Flow.ON])

    def _one_of(self, ways: Sequence[Callable[[], Flow]]) -> Flow:
        before = self._snapshot()
        flows: list[Flow] = []
        ends: list[Snapshot] = []
        left: list[Snapshot] = []
        with self._unsure():
            for way in ways:
                self._restore(before)
                flows.append(way())
                (ends if flows[-1] is Flow.ON else left).append(self._snapshot())
        self._merge(ends or left or [before])
        if ends or not flows:
            return Flow.ON
        return Flow.LEFT if Flow.LEFT in flows else Flow.BROKEN

    @contextmanager
    def _unsure(self) -> Iterator[None]:
        self.unsure += 1
        try:
            yield
        finally:
            self.unsure -= 1

    def _snapshot(self) -> Snapshot:
        self.step(sum(len(scope.names) for scope in self._scopes) // 10)
        return {scope: dict(scope.names) for scope in self._scopes}

    def _restore(self, snapshot: Snapshot) -> None:
        for scope, names in snapshot.items():
            scope.names = dict(names)

    def _merge(self, ends: Sequence[Snapshot]) -> None:
        """What a name is bound to after one of these; where one of them does not bind it, what others do."""
        for scope in {scope: None for end in ends for scope in end}:
            found = [end[scope] for end in ends if scope in end]
            names = {name: None for each in found for name in each}
            scope.names = {name: either(each[name] for each in found if name in each) for name in names}


def _fields(node: ast.AST) -> dict[str, Any]:
    return dict(ast.iter_fields(node))


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _bind(frame: Scope, function: Function, receiver: Any, given: Given) -> None:
    """Binds a call's arguments; unknown where the call does not show them and there is no default."""
    wanted = function.node.args
    places = [each.arg for each in (*wanted.posonlyargs, *wanted.args)]
    only_named = [each.arg for each in wanted.kwonlyargs]
    defaults = dict(zip(places[::-1], function.defaults[::-1], strict=False))
    defaults |= dict(zip(only_named, function.named_defaults, strict=True))
    passed = [*([receiver] if receiver is not None else []), *given.arguments]
    values = {**dict(zip(places, passed, strict=False)), **given.named}
    for name in (*places, *only_named):
        frame.names[name] = values.get(name, defaults.get(name, UNKNOWN))
    if wanted.vararg is not None:
        frame.names[wanted.vararg.arg] = tuple(passed[len(places) :]) if given.complete else UNKNOWN
    if wanted.kwarg is not None:
        rest = {name: value for name, value in given.named.items() if name not in (*places, *only_named)}
        frame.names[wanted.kwarg.arg] = rest if given.complete else UNKNOWN

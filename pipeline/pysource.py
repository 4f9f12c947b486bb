"""Reading untrusted Python source with `ast`, never running it: for the rooms that look at candidates."""

from __future__ import annotations

import ast
import builtins
import re
import threading
import warnings
from collections.abc import Iterable, Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef
_MODULE_NAMES = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__path__", "__annotations__"}


_COMPILERS = re.compile(
    r"_compile_kernel|nvrtc|cupy|pycuda|numba|triton|tilelang|cuModuleLoad|cuLibraryLoad|ctypes|cffi|subprocess|os\.system"
)
_ONE_AT_A_TIME = threading.Lock()
"""CPython's parser keeps its depth for all threads together: two that build trees at once may end in a
SystemError. Filters of warnings belong to all threads, too."""


def parse(text: str) -> ast.Module | SyntaxError:
    """The module's tree, or why there is none, as a value: bad source is data here, not an exception.

    Nesting too deep for the parser, lone surrogates and NUL characters are returned as a SyntaxError too.
    """
    try:
        with (
            _ONE_AT_A_TIME,
            warnings.catch_warnings(),
        ):  # invalid escapes such as "\d" would be printed to the user
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return SyntaxError(str(error) or type(error).__name__)


def compiles_itself(text: str) -> bool:
    """Whether a program names a way to native code besides torch's extensions."""
    return _COMPILERS.search(text) is not None


def is_main_guard(node: ast.stmt) -> bool:
    """True for `if __name__ == "__main__":`, whose body does not run on import."""
    if not (isinstance(node, ast.If) and isinstance(node.test, ast.Compare)):
        return False
    sides = (node.test.left, *node.test.comparators)
    return (
        all(isinstance(operator, ast.Eq) for operator in node.test.ops)
        and any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)
        and any(isinstance(side, ast.Constant) and side.value == "__main__" for side in sides)
    )


def import_time(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that an import may run, in order: all but function, class and main-guard bodies."""
    pending = list(body)[::-1]
    while pending:
        statement = pending.pop()
        yield statement
        if is_main_guard(statement):
            pending.extend(reversed(statement.orelse if isinstance(statement, ast.If) else []))
        elif not isinstance(statement, Function | ast.ClassDef):
            pending.extend(reversed(_nested(statement)))


def _nested(statement: ast.stmt) -> list[ast.stmt]:
    """The statements directly inside a compound statement, handlers and cases included, in source order."""
    inner: list[ast.stmt] = []
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.stmt):
            inner.append(child)
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            inner.extend(child.body)
    return inner


def find_class(tree: ast.Module, name: str) -> ast.ClassDef | None:
    """The class that `name` is bound to once the module is imported, when the source alone shows it.

    A class statement counts at module level, also inside `if`, `try` or `with`; so does an alias
    (`ModelNew = Fast`) of such a class. A class inside a function, another class or under
    `if __name__ == "__main__"` does not, nor does a name bound to the result of a call.
    """
    classes: dict[str, ast.ClassDef] = {}
    for statement in import_time(tree.body):
        if isinstance(statement, ast.ClassDef):
            classes[statement.name] = statement
        elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            value = statement.value
            alias = classes.get(value.id) if isinstance(value, ast.Name) else None
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                if isinstance(target, ast.Name) and alias is not None:
                    classes[target.id] = alias
                elif isinstance(target, ast.Name):
                    classes.pop(target.id, None)
    return classes.get(name)


def lineage(tree: ast.Module, cls: ast.ClassDef) -> tuple[list[ast.ClassDef], list[ast.expr]]:
    """A class and its bases as far as the file defines them, nearest first; and the bases that it does not.

    A base counts by what its name is bound to once the module is imported: where a class has taken the name
    of its own base (`_Once = Model`, then `class Model(_Once)`), that is the alias.
    """
    found: list[ast.ClassDef] = []
    unknown: list[ast.expr] = []
    todo = [cls]
    while todo:
        looked_at = todo.pop(0)
        if looked_at in found:
            continue
        found.append(looked_at)
        bases: list[ast.ClassDef] = []
        for base in looked_at.bases:
            known = find_class(tree, base.id) if isinstance(base, ast.Name) else None
            if known is None or known is looked_at:  # `class Model(Model)`: the class of that name before
                unknown.append(base)
            else:
                bases.append(known)
        todo[:0] = bases
    return found, unknown


def find_method(tree: ast.Module, cls: ast.ClassDef | None, name: str) -> Function | None:
    """The method as a class defines it, or inherits it within the file from the first base that has it."""
    for each in lineage(tree, cls)[0] if cls is not None else ():
        for node in reversed(each.body):
            if isinstance(node, Function) and node.name == name:
                return node
    return None


def bound_names(tree: ast.AST) -> set[str]:
    """Every name that the source binds anywhere, in whatever scope."""
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.arg(arg=name):
                names.add(name)
            case ast.alias(name=name, asname=asname):
                names.add(asname or name.partition(".")[0])
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                names.add(name)
            case ast.MatchMapping(rest=str(name)):
                names.add(name)
            case ast.Global(names=declared) | ast.Nonlocal(names=declared):
                names.update(declared)
    return names


def undefined_names(tree: ast.Module, within: Iterable[ast.AST] | None = None) -> dict[str, int]:
    """Names that are used and bound nowhere, with the first line that uses each.

    Scopes are ignored, so a name bound in one function and used in another is not reported; a star
    import may bind anything, so nothing is reported beside one. With `within`, only uses in these parts of
    the tree count.
    """
    if "*" in (bound := bound_names(tree)):
        return {}
    known = bound | _MODULE_NAMES
    undefined: dict[str, int] = {}
    for node in (node for part in ((tree,) if within is None else within) for node in ast.walk(part)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in known:
            undefined[node.id] = min(node.lineno, undefined.get(node.id, node.lineno))
    return dict(sorted(undefined.items(), key=lambda item: (item[1], item[0])))


def reached_from(tree: ast.Module, name: str) -> list[ast.AST]:
    """The parts of the tree that importing it and using `name` reach.

    That is what runs on import, and the functions and classes whose names are read there or in what is
    reached so, `name` first. `get_inputs` beside a ModelNew is not reached, nor is what only it calls, nor
    what a main guard runs. A class is reached with all its methods.
    """
    reached: list[ast.AST] = []
    waiting: dict[str, list[ast.AST]] = {}
    for statement in import_time(tree.body):
        if isinstance(statement, Function | ast.ClassDef):
            waiting.setdefault(statement.name, []).append(statement)
            reached.extend(_run_by_definition(statement))
        elif isinstance(statement, ast.If | ast.While):
            if not is_main_guard(statement):
                reached.append(statement.test)
        elif _nested(statement):  # these come by themselves; here what a `with` or a `for` reads
            reached.extend(part for part in ast.iter_child_nodes(statement) if isinstance(part, _READ))
        else:
            reached.append(statement)
    todo = [name]
    position = 0
    while todo:
        reached.extend(waiting.pop(todo.pop(), ()))
        for part in reached[position:]:
            todo.extend(
                node.id for node in ast.walk(part) if isinstance(node, ast.Name) and node.id in waiting
            )
        position = len(reached)
    return reached


_READ = (ast.expr, ast.withitem)


def _run_by_definition(statement: Function | ast.ClassDef) -> Iterator[ast.AST]:
    """What runs when a function or class is defined: decorators, a function's defaults and annotations, a
    class's bases and body."""
    yield from statement.decorator_list
    if isinstance(statement, ast.ClassDef):
        yield from (*statement.bases, *statement.keywords)
        for inner in import_time(statement.body):
            if isinstance(inner, Function | ast.ClassDef):
                yield from _run_by_definition(inner)
            elif not _nested(inner):
                yield inner
    else:
        yield from (part for part in ast.iter_child_nodes(statement.args) if not isinstance(part, ast.arg))
        every = [node for node in ast.walk(statement.args) if isinstance(node, ast.arg)]
        annotations = (*(each.annotation for each in every), statement.returns)
        yield from (annotation for annotation in annotations if annotation is not None)

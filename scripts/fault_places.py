"""Small faults of Python source: an operator turned, a condition or statement left out, a constant changed.

    for fault in pick(root, seed=1, count=200):
        (root / fault.file).write_text(fault.applied((root / fault.file).read_text()))

Left alone are annotations, docstrings, f-strings and other texts for people (arguments of what is raised,
logged or printed), and strings that are no plain words: a changed text is no fault of the program.
"""

from __future__ import annotations

import ast
import hashlib
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

PACKAGES = ("pipeline", "db")
LEFT_OUT = ("pipeline/prompts", "pipeline/reference_models", "pipeline/db")
"""Links: two lead to data, one to a package that is read by its own name."""
BLOCKS = (ast.stmt, ast.excepthandler, ast.match_case)
KINDS = ("operator", "condition", "constant", "statement")

TURNED: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: (r"is\s+not", "is"),
    ast.In: ("in", "not in"), ast.NotIn: (r"not\s+in", "in"), ast.Add: (r"\+", "-"), ast.Sub: ("-", "+"),
    ast.Mult: (r"\*", "/"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "*"),
    ast.BitAnd: ("&", "|"), ast.BitOr: (r"\|", "&"), ast.And: (r"\band\b", "or"), ast.Or: (r"\bor\b", "and"),
}  # fmt: skip
"""The pattern of an operator between two operands, and what takes its place."""
FOR_PEOPLE = re.compile(
    r"(.*\.)?(\w*Error|\w*Exception|print|echo|warn\w*|cast|TypeVar)|.*\b_?log(ger)?\.\w+", re.I
)
"""Calls whose arguments are texts for people or for type checkers."""
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
Change = tuple[str, int, int, str]
"""Kind, start, end, and the new text."""


@dataclass(frozen=True)
class Fault:
    """One change of a file. `start` and `end` are offsets in its UTF-8 bytes."""

    kind: str
    file: str
    line: int
    """The first line of the statement, of its decorators if it has some."""
    last_line: int
    """The last line of the statement, or of its head where it has a body."""
    in_function: bool
    """Whether the statement runs when a function is called, and not when the module is imported."""
    start: int
    end: int
    before: str
    after: str

    def applied(self, source: str) -> str:
        """The source with the fault in it."""
        data = source.encode()
        return (data[: self.start] + self.after.encode() + data[self.end :]).decode()


def pick(root: Path, seed: int, count: int, under: tuple[str, ...] = PACKAGES) -> list[Fault]:
    """`count` faults in files below `under`, as many of each kind, at most one in a statement.

    Statements of a kind are drawn uniformly, then one of the faults that each of them can have.
    """
    places = {kind: statements for kind, statements in _by_kind(root, under).items() if statements}
    draw = random.Random(seed)
    chosen: dict[tuple[str, int], Fault] = {}
    orders = {kind: iter(draw.sample(statements, len(statements))) for kind, statements in places.items()}
    while orders and len(chosen) < count:
        for kind, statements in list(orders.items()):
            options = next((each for each in statements if (each[0].file, each[0].line) not in chosen), None)
            if options is None:
                del orders[kind]
            elif len(chosen) < count and works(fault := draw.choice(options), _read(root, fault.file)):
                chosen[fault.file, fault.line] = fault
    return list(chosen.values())


def _read(root: Path, file: str) -> str:
    return (root / file).read_text(encoding="utf-8")


def _by_kind(root: Path, under: tuple[str, ...]) -> dict[str, list[list[Fault]]]:
    """For each kind the statements that can have such a fault, each as the list of its faults."""
    statements: dict[tuple[str, str, int], list[Fault]] = {}
    for file in source_files(root):
        if any(file == top or file.startswith(f"{top}/") for top in under):
            for fault in faults(file, _read(root, file)):
                statements.setdefault((fault.kind, file, fault.line), []).append(fault)
    return {kind: [options for key, options in statements.items() if key[0] == kind] for kind in KINDS}


def source_files(root: Path) -> list[str]:
    """The Python files of the packages, as paths below `root`."""
    names = (file.relative_to(root).as_posix() for top in PACKAGES for file in (root / top).rglob("*.py"))
    return sorted(name for name in names if not name.startswith(LEFT_OUT))


def digests(root: Path) -> dict[str, str]:
    """The content of each of these files, as the start of a SHA-256: whether an index is of this source."""
    return {file: hashlib.sha256((root / file).read_bytes()).hexdigest()[:16] for file in source_files(root)}


def faults(file: str, source: str) -> list[Fault]:
    """All changes that a source can have, in the order of its lines; `works` says whether one is a fault."""
    return list(_Finder(file, source).of_body(ast.parse(source).body, in_function=False))


def works(fault: Fault, source: str) -> bool:
    """Whether the changed source parses and means something else: a comment may hold an operator, too."""
    try:
        return ast.dump(ast.parse(fault.applied(source))) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False


class _Finder:
    """Finds the changes of one source."""

    def __init__(self, file: str, source: str) -> None:
        self._file = file
        self._data = source.encode()
        self._starts = [0]
        for line in self._data.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def of_body(self, body: Iterable[ast.AST], *, in_function: bool) -> Iterator[Fault]:
        """All faults of these statements, and of the statements inside them."""
        for node in body:
            if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
                continue
            if isinstance(node, ast.stmt):
                yield from self._of_statement(node, in_function)
            inside = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            nested = (child for child in ast.iter_child_nodes(node) if isinstance(child, BLOCKS))
            yield from self.of_body(nested, in_function=inside)

    def _of_statement(self, statement: ast.stmt, in_function: bool) -> Iterator[Fault]:
        heads = _heads(statement)
        first = min([statement.lineno, *(node.lineno for node in heads)])  # a decorator's
        ends = [node.end_lineno or 0 for node in heads if hasattr(statement, "body")]
        last = max([statement.lineno, *ends]) if hasattr(statement, "body") else statement.end_lineno or 0
        changes = [
            *self._of_whole(statement),
            *(each for head in heads for each in self._of_expression(head)),
        ]
        for kind, start, end, after in changes:
            before = self._data[start:end].decode()
            yield Fault(kind, self._file, first, last, in_function, start, end, before, after)

    def _of_whole(self, statement: ast.stmt) -> Iterator[Change]:
        match statement:
            case ast.Expr(ast.Call() as call) if not _for_people(call):
                yield "statement", *self._span(statement), "pass"
            case ast.AugAssign() | ast.Delete() | ast.Continue() | ast.Break():
                yield "statement", *self._span(statement), "pass"
            case ast.If(test=test):
                yield from (("condition", *self._span(test), word) for word in ("True", "False"))
            case ast.While(test=test):
                yield "condition", *self._span(test), "False"

    def _of_expression(self, node: ast.AST) -> Iterator[Change]:
        match node:
            case ast.JoinedStr():
                return
            case ast.Call() if _for_people(node):
                return
            case ast.Compare(left=first, ops=operators, comparators=others):
                for (left, right), operator in zip(pairwise([first, *others]), operators, strict=True):
                    yield from self._turned(left, operator, right)
            case ast.BinOp(left=left, op=operator, right=right) if not (_is_text(left) or _is_text(right)):
                yield from self._turned(left, operator, right)
            case ast.BoolOp(op=operator, values=values):
                for left, right in pairwise(values):
                    yield from self._turned(left, operator, right)
                word = " and " if isinstance(operator, ast.And) else " or "
                for omitted in values:
                    kept = word.join(self._in_brackets(value) for value in values if value is not omitted)
                    yield "condition", *self._span(node), f"({kept})"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield "operator", *self._span(node), self._in_brackets(operand)
            case ast.IfExp(test=test) | ast.comprehension(ifs=[test, *_]):
                yield "condition", *self._span(test), "True"
            case ast.Constant(value=value):
                yield from (("constant", *self._span(node), after) for after in _changed(value))
        for child in ast.iter_child_nodes(node):
            yield from self._of_expression(child)

    def _turned(self, left: ast.expr, operator: ast.AST, right: ast.expr) -> Iterator[Change]:
        start, end = self._span(left)[1], self._span(right)[0]
        pattern, after = TURNED.get(type(operator), ("(?!)", ""))
        if place := re.search(pattern.encode(), self._data[start:end]):
            yield "operator", start + place.start(), start + place.end(), after

    def _in_brackets(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return f"({self._data[start:end].decode()})"

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        end_line, end_column = node.end_lineno or 0, node.end_col_offset or 0
        return self._starts[node.lineno - 1] + node.col_offset, self._starts[end_line - 1] + end_column


def _heads(statement: ast.stmt) -> list[ast.expr]:
    """The expressions that a statement itself evaluates, without annotations, docstrings and `__all__`."""
    match statement:
        case ast.FunctionDef(args=arguments) | ast.AsyncFunctionDef(args=arguments):
            return [*arguments.defaults, *filter(None, arguments.kw_defaults)]
        case ast.AnnAssign(value=value):
            return [value] if value else []
        case ast.With(items=items) | ast.AsyncWith(items=items):
            return [item.context_expr for item in items]
        case (
            ast.Assign(targets=[ast.Name(id="__all__" | "__slots__")])
            | ast.Expr(ast.Constant())
            | ast.Assert()
        ):
            return []
    return [node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.expr)]


def _for_people(call: ast.Call) -> bool:
    return FOR_PEOPLE.fullmatch(ast.unparse(call.func)) is not None


def _is_text(node: ast.expr) -> bool:
    """Strings are joined with operators of arithmetic, and types with `|`: to turn those proves nothing."""
    if isinstance(node, ast.Constant):
        return node.value is None or isinstance(node.value, str)
    return isinstance(node, ast.JoinedStr) or ast.unparse(node)[:1].isupper()


def _changed(value: object) -> list[str]:
    """Another constant of the same type."""
    match value:
        case bool():
            return [str(not value)]
        case int():
            return [str(value + 1)]
        case float():
            return [repr(value * 2 or 1.0)]
        case str() if WORD.fullmatch(value):
            return [repr(f"{value}_")]
    return []

"""What a class or function needs of its file, read with `ast`: the statements that bind names it reads.

Example: of a file with a class `Block` that reads `WIDTH` and calls `mixed`, that is `import torch`,
`WIDTH = 64`, `def mixed` and `class Block`, in the file's order and with its comments, and nothing else.
"""

from __future__ import annotations

import ast
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kernelproof.errors import UsageError
from kernelproof.problems.reading import parse_source, read_source
from kernelproof.pysource import is_main_guard

_OWN_SCOPE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class SourceFile:
    """A Python file, read."""

    path: Path
    text: str
    tree: ast.Module
    lines: tuple[str, ...]
    """As Python counts them, without their endings."""

    @classmethod
    def read(cls, path: Path) -> SourceFile:
        """Raises UsageError where it cannot be read or is no Python."""
        text = read_source(path)
        with io.StringIO(text, newline=None) as stream:  # str.splitlines also splits at form feeds
            lines = tuple(line.rstrip("\n") for line in stream)
        return cls(path, text, parse_source(text, path), lines)


@dataclass(frozen=True)
class Piece:
    """One statement at module level."""

    node: ast.stmt
    binds: frozenset[str]
    reads: frozenset[str]
    changes: frozenset[str]
    """Names of objects that it may change: `TABLE.append(1)`, `TABLE[0] = 1`."""

    @property
    def is_import(self) -> bool:
        """Whether it is an import by itself."""
        return isinstance(self.node, ast.Import | ast.ImportFrom)

    @property
    def always(self) -> bool:
        """Whether it always counts as needed: a star import may bring any name."""
        return isinstance(self.node, ast.ImportFrom) and any(each.name == "*" for each in self.node.names)


@dataclass
class Needed:
    """The statements of one file that are needed, in its order."""

    file: SourceFile
    pieces: list[Piece] = field(default_factory=list)

    @property
    def future(self) -> list[str]:
        """The names that the file imports from `__future__`."""
        nodes = (node for node in self.file.tree.body if _is_future(node))
        return [each.name for node in nodes if isinstance(node, ast.ImportFrom) for each in node.names]

    @property
    def binds(self) -> set[str]:
        """Every name that is bound."""
        return {name for piece in self.pieces for name in piece.binds}

    def meaning(self, name: str) -> set[str]:
        """What binds `name`, so that two files can be compared."""
        found: set[str] = set()
        for piece in self.pieces:
            if name not in piece.binds:
                continue
            if isinstance(piece.node, ast.Import):
                found |= {
                    f"import {ast.unparse(each)}" for each in piece.node.names if _bound_by(each) == name
                }
            elif isinstance(piece.node, ast.ImportFrom):
                names = [each for each in piece.node.names if _bound_by(each) == name]
                found |= {f"from {piece.node.module} import {ast.unparse(each)}" for each in names}
            else:
                found.add(ast.dump(piece.node))
        return found

    def text(self, without: Needed | None = None) -> str:
        """The statements' own text. With `without`, those that bind only what is bound there are left out."""
        parts: list[str] = []
        end = 0
        for piece in self.pieces:
            if without is not None and piece.binds and piece.binds <= without.binds:
                continue
            first, last = _lines_of(piece.node, self.file.lines)
            if last <= end:
                continue  # a second statement on one line
            if parts:
                parts.append(self._gap(piece, end, first))
            parts.append("\n".join(self.file.lines[max(first, end + 1) - 1 : last]))
            end = last
        return "".join(parts)

    def _gap(self, piece: Piece, end: int, first: int) -> str:
        between = self.file.lines[end : first - 1]
        if all(not line.strip() for line in between):
            return "\n" * (1 + len(between))
        return "\n\n\n" if isinstance(piece.node, _OWN_SCOPE) else "\n" if piece.is_import else "\n\n"


def needed(file: SourceFile, *names: str) -> Needed:
    """What the file's `names` need of it. Raises UsageError where that includes modules of the user's own."""
    pieces = [_piece(node) for node in file.tree.body if not _never(node)]
    wanted, imported, chosen = set(names), set[str](), set[int]()
    grew = True
    while grew:
        grew = False
        for index, piece in enumerate(pieces):
            if index in chosen:
                continue
            if piece.always or piece.binds & wanted or piece.changes & (wanted - imported):
                chosen.add(index)
                wanted |= piece.reads
                imported |= piece.binds if piece.is_import else set()
                grew = True
    found = Needed(file, [pieces[index] for index in sorted(chosen)])
    for piece in found.pieces:
        _require_elsewhere(piece.node, file)
    return found


def _piece(node: ast.stmt) -> Piece:
    reads = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    reads |= {name for each in ast.walk(node) if isinstance(each, ast.Global) for name in each.names}
    return Piece(node, frozenset(_binds(node)), frozenset(reads), frozenset(_changes(node)))


def _binds(node: ast.AST) -> Iterator[str]:
    """The names that running a statement of a module binds in it."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
            return
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from map(_bound_by, names)
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
    if not isinstance(node, (ast.Lambda, *_COMPREHENSIONS)):
        for child in ast.iter_child_nodes(node):
            yield from _binds(child)


def _changes(node: ast.AST) -> Iterator[str]:
    """Names whose objects a statement of a module changes, or may change by calling a method of theirs."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Lambda():
            return
        case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()) | ast.Expr(value=ast.Call()):
            yield from _root(node)
    for child in ast.iter_child_nodes(node):
        yield from _changes(child)


def _root(node: ast.AST) -> Iterator[str]:
    """`TABLE` of `TABLE.rows[0].append(1)`."""
    at: ast.AST = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else node
    while isinstance(at, ast.Attribute | ast.Subscript | ast.Call):
        at = at.func if isinstance(at, ast.Call) else at.value
    if isinstance(at, ast.Name):
        yield at.id


def _bound_by(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _never(node: ast.stmt) -> bool:
    """Statements that no class needs: a main guard, imports for type checkers, and what is written anew."""
    typing_only = isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
    return is_main_guard(node) or typing_only or _is_future(node)


def _lines_of(node: ast.stmt, lines: tuple[str, ...]) -> tuple[int, int]:
    """First and last line, decorators and the comments directly above included."""
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
    while first > 1 and lines[first - 2].startswith("#") and not lines[first - 2].startswith("#!"):
        first -= 1
    return first, node.end_lineno or node.lineno


def _require_elsewhere(node: ast.stmt, file: SourceFile) -> None:
    """A problem is one file: what it imports has to be installed, not lie beside it."""
    for each in ast.walk(node):
        if isinstance(each, ast.ImportFrom):
            modules = ["." * each.level + (each.module or "")]
        elif isinstance(each, ast.Import):
            modules = [alias.name for alias in each.names]
        else:
            continue
        for module in modules:
            if module.startswith(".") or _beside(module.partition(".")[0], file.path):
                raise UsageError(
                    f"{file.path}:{each.lineno}: the module {module} is needed too, and a problem is one "
                    "file; copy what is needed of it into this file"
                )


def _beside(top: str, path: Path) -> bool:
    """Whether the module `top` lies in the file's folder, or is the package that the file is in."""
    folder = path.absolute().parent
    if "site-packages" in folder.parts:
        return False  # it is installed, and so is what it imports by its full name
    if (folder / f"{top}.py").is_file() or (folder / top / "__init__.py").is_file():
        return True
    while (folder / "__init__.py").is_file():
        if folder.name == top:
            return True
        folder = folder.parent
    return False

"""Reads one problem file with `ast`. Nothing of the file is run."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from kernelproof.errors import UsageError
from kernelproof.hashing import sha256_text
from kernelproof.problems.sizes import SizesError, read_sizes
from kernelproof.pysource import Function, find_method, parse
from kernelproof.regular_files import read_regular
from kernelproof.types import Problem, Signature

_LEVEL = re.compile(r"level(\d+)")
_NUMBERED = re.compile(r"(\d+)_(.+)")


@dataclass(frozen=True)
class Place:
    """One problem file, not yet opened."""

    path: Path
    folder: str
    """Name of the folder that holds the file: `level1`."""
    level: int | None
    """N of a folder named `levelN`."""
    number: int | None
    """23 of `23_softmax.py`."""
    name: str
    """`softmax` of `23_softmax.py`."""

    @property
    def id(self) -> str:
        """`level1/23`; for a file without number `level1/softmax`, outside a level folder just `softmax`."""
        if self.number is not None:
            return f"{self.folder}/{self.number}"
        return f"{self.folder}/{self.name}" if self.level is not None else self.name

    @property
    def spellings(self) -> tuple[str, ...]:
        """All ways to ask for it, lower case: `level1/23`, `level1/23_softmax`, `softmax` ..."""
        stem = self.path.stem
        ways = (self.id, f"{self.folder}/{stem}", f"{self.folder}/{self.name}", stem, self.name)
        return tuple(dict.fromkeys(way.lower() for way in ways))

    @property
    def order(self) -> tuple[float, str, float, str]:
        """Sorts levels by number, then folders, then problems by number, those without one last."""
        level = float("inf") if self.level is None else self.level
        number = float("inf") if self.number is None else self.number
        return level, self.folder, number, self.name


def place_of(path: Path) -> Place:
    """Reads a path; the file is not touched."""
    path = path.absolute()
    numbered = _NUMBERED.fullmatch(path.stem)
    return Place(
        path=path,
        folder=path.parent.name,
        level=level_of(path.parent.name),
        number=int(numbered[1]) if numbered else None,
        name=numbered[2] if numbered else path.stem,
    )


def level_of(folder: str) -> int | None:
    """N of a folder named `levelN`, else None."""
    match = _LEVEL.fullmatch(folder)
    return int(match[1]) if match else None


def read_problem(path: Path, *, suite: str | None = None) -> Problem:
    """The problem in the file at `path`; `suite` is the suite's name, `file` where there is none.

    Raises UsageError, with file and line and what to do, when the file cannot be read or parsed, lacks
    `class Model`, `get_inputs()` or `get_init_inputs()`, or declares `SIZES` that do not fit the file.
    """
    return parse_problem(read_source(path), place_of(path), path, suite=suite)


def parse_problem(source: str, place: Place, origin: Path | str, *, suite: str | None = None) -> Problem:
    """The problem that `source` is, at `place`. Raises UsageError as `read_problem`, naming `origin`."""
    tree = parse_source(source, origin)
    model = _model(origin, tree)
    for name in ("get_inputs", "get_init_inputs"):
        _require_function(origin, tree, name)
    try:
        sizes = read_sizes(tree)
    except SizesError as error:
        _refuse(origin, error.line, str(error))
    return Problem(
        id=place.id,
        suite=suite or "file",
        name=place.name,
        level=place.level,
        source=source,
        sha256=sha256_text(source),
        sizes=sizes,
        signature=Signature(
            init=_parameters(find_method(tree, model, "__init__")),
            forward=_parameters(find_method(tree, model, "forward")),
        ),
        summary=_first_line(tree) or _first_line(model),
    )


def read_source(path: Path) -> str:
    """The text of a Python file. Raises UsageError when it cannot be read or is no UTF-8."""
    try:
        return read_regular(path).decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8") from error


def parse_source(source: str, origin: Path | str) -> ast.Module:
    """The tree of `source`. Raises UsageError, with line, when it is no Python; the error names `origin`."""
    tree = parse(source)
    if isinstance(tree, SyntaxError):
        _refuse(origin, tree.lineno or 1, f"does not parse as Python: {tree.msg}")
    return tree


def _model(origin: Path | str, tree: ast.Module) -> ast.ClassDef:
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == "Model":
            return node
    _refuse(origin, 1, "defines no `class Model(nn.Module)` at module level; a problem is a file that does")


def _require_function(origin: Path | str, tree: ast.Module, name: str) -> None:
    found = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name]
    if not found:
        what = "the arguments of forward" if name == "get_inputs" else "the arguments of Model"
        _refuse(
            origin, 1, f"defines no `def {name}()` at module level; add one that returns a list of {what}"
        )
    arguments = found[-1].args
    optional = len(arguments.defaults)
    if len(arguments.posonlyargs + arguments.args) > optional or None in arguments.kw_defaults:
        _refuse(origin, found[-1].lineno, f"{name} is called without arguments; give its parameters defaults")


def _parameters(function: Function | None) -> tuple[str, ...]:
    if function is None:
        return ()
    arguments = function.args
    names = [a.arg for a in arguments.posonlyargs + arguments.args][1:]
    if arguments.vararg:
        names.append(f"*{arguments.vararg.arg}")
    names += [a.arg for a in arguments.kwonlyargs]
    if arguments.kwarg:
        names.append(f"**{arguments.kwarg.arg}")
    return tuple(names)


def _first_line(node: ast.Module | ast.ClassDef) -> str:
    text = (ast.get_docstring(node) or "").strip()
    return text.splitlines()[0].strip() if text else ""


def _refuse(origin: Path | str, line: int, message: str) -> NoReturn:
    raise UsageError(f"{origin}:{line}: {message}")

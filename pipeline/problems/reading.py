"""Reads one problem file with `ast`. Nothing of the file is run."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NoReturn

from pipeline.errors import UsageError
from pipeline.hashing import sha256_text
from pipeline.problems.place import place_of
from pipeline.problems.sizes import SizesError, read_sizes
from pipeline.pysource import Function, find_method, parse
from pipeline.types import Problem, Signature


def read_problem(path: Path, *, suite: str | None = None) -> Problem:
    """The problem in the file at `path`; `suite` is the suite's name, `file` where there is none.

    Raises UsageError, with file and line and what to do, when the file cannot be read or parsed, lacks
    `class Model`, `get_inputs()` or `get_init_inputs()`, or declares `SIZES` that do not fit the file.
    """
    source = _text(path)
    tree = _parse(path, source)
    model = _model(path, tree)
    for name in ("get_inputs", "get_init_inputs"):
        _require_function(path, tree, name)
    try:
        sizes = read_sizes(tree)
    except SizesError as error:
        _refuse(path, error.line, str(error))
    place = place_of(path)
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


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8") from error


def _parse(path: Path, source: str) -> ast.Module:
    tree = parse(source)
    if isinstance(tree, SyntaxError):
        _refuse(path, tree.lineno or 1, f"does not parse as Python: {tree.msg}")
    return tree


def _model(path: Path, tree: ast.Module) -> ast.ClassDef:
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == "Model":
            return node
    _refuse(path, 1, "defines no `class Model(nn.Module)` at module level; a problem is a file that does")


def _require_function(path: Path, tree: ast.Module, name: str) -> None:
    found = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name]
    if not found:
        what = "the arguments of forward" if name == "get_inputs" else "the arguments of Model"
        _refuse(path, 1, f"defines no `def {name}()` at module level; add one that returns a list of {what}")
    arguments = found[-1].args
    optional = len(arguments.defaults)
    if len(arguments.posonlyargs + arguments.args) > optional or None in arguments.kw_defaults:
        _refuse(path, found[-1].lineno, f"{name} is called without arguments; give its parameters defaults")


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


def _refuse(path: Path, line: int, message: str) -> NoReturn:
    raise UsageError(f"{path}:{line}: {message}")

"""Reads one problem file with `ast`; nothing of the file is run. `kernelproof problems new FILE` writes one
to start from.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from kernelproof.errors import UsageError, writing
from kernelproof.hashing import sha256_text
from kernelproof.pysource import Function, find_method, parse
from kernelproof.regular_files import read_regular
from kernelproof.types import Problem, Signature

Sizes = dict[str, dict[str, Any]]

_FORM = 'SIZES = {"full": {"ROWS": 4096}, "small": {"ROWS": 32}}'


class SizesError(Exception):
    """`SIZES` does not fit the file; `line` is where."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def read_sizes(tree: ast.Module) -> Sizes:
    """The presets of a parsed file; one preset `full` that changes nothing where it declares none.

    Raises SizesError when SIZES is no literal of the form shown in the message, lacks `full`, names what
    is no module-level constant, or leaves out a constant that is computed from one it replaces.
    """
    constants = dict(_assignments(tree))
    declared = constants.pop("SIZES", None)
    if declared is None:
        return {"full": {}}
    sizes = _literal(declared)
    for preset, values in sizes.items():
        for name, value in values.items():
            if name not in constants:
                raise SizesError(
                    declared.lineno,
                    f"SIZES[{preset!r}] names {name}, which is no module-level constant; define it",
                )
            _require_json(declared.lineno, preset, name, value)
        _require_derived(preset, values, constants)
    return sizes


def _assignments(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _bound(target, node.value)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            yield node.target.id, node.value


def _bound(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Names that an assignment binds, with the expression: `A, B = 1, 2` binds two."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List):
        paired = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
        parts = (
            value.elts if paired and isinstance(value, ast.Tuple | ast.List) else [value] * len(target.elts)
        )
        for element, part in zip(target.elts, parts, strict=True):
            yield from _bound(element, part)


def _literal(node: ast.expr) -> Sizes:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise SizesError(node.lineno, f"SIZES must be a literal, such as {_FORM}") from error
    if not isinstance(value, dict) or not value:
        raise SizesError(node.lineno, f"SIZES must be a dict of dicts, such as {_FORM}")
    for preset, values in value.items():
        named = isinstance(values, dict) and all(isinstance(name, str) for name in values)
        if not isinstance(preset, str) or not named:
            raise SizesError(node.lineno, f"SIZES[{preset!r}] must be a dict of constants, as in {_FORM}")
    if "full" not in value:
        raise SizesError(node.lineno, "SIZES lacks the preset 'full', which is what is verified and timed")
    return value


def _require_json(line: int, preset: str, name: str, value: Any) -> None:
    """Presets travel as JSON: values that JSON would change (tuples, sets, bytes) are refused."""
    if isinstance(value, list):
        for item in value:
            _require_json(line, preset, name, item)
    elif not (value is None or isinstance(value, bool | int | float | str)):
        raise SizesError(
            line, f"SIZES[{preset!r}][{name!r}] must be a number, text, bool, None or a list of these"
        )


def _require_derived(preset: str, values: dict[str, Any], constants: dict[str, ast.expr]) -> None:
    """A constant computed from a replaced one keeps its old value, unless the preset names it too."""
    for name, expression in constants.items():
        used = {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)} & values.keys()
        if used and name not in values:
            raise SizesError(
                expression.lineno,
                f"{name} is computed from {', '.join(sorted(used))}, which SIZES[{preset!r}] replaces"
                f" afterwards; name {name} in SIZES[{preset!r}] too",
            )


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


TEMPLATE = '''\
"""One line that says what the model computes: models read it in their prompt."""

import torch
from torch import nn

ROWS = 4096
WIDTH = 2048

SIZES = {  # values of the constants above; small for a CPU, with odd sizes
    "full": {"ROWS": 4096, "WIDTH": 2048},
    "small": {"ROWS": 131, "WIDTH": 67},
}


class Model(nn.Module):
    """The reference: put your module's code here, with everything that it needs from your other files."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 2 * width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (rows, width), float32. Returns the same shape."""
        a, b = self.linear(x).chunk(2, dim=-1)
        return nn.functional.silu(a) * b


def get_inputs():
    """The arguments of forward, drawn anew for each trial: no seed, no device."""
    return [torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    """The arguments of Model."""
    return [WIDTH]
'''


def write_template(path: Path) -> None:
    """Writes a problem that runs, with the folders that lead to it.

    Raises UsageError where `path` is there already or does not end in .py, MachineError where it cannot be
    written.
    """
    if path.suffix != ".py" or path.name.startswith("_"):
        raise UsageError(f"{path} is no name of a problem; give one such as mine/level1/1_gated_unit.py")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(TEMPLATE)
        except FileExistsError:
            raise UsageError(f"{path} is there already; give another name") from None

"""Reads the literal `SIZES` of a problem file: presets that replace module-level constants."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

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

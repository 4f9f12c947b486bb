"""Only a backend's own module knows its name. A device may have the same word, as torch names it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from kernelproof.backends import names

ROOT = Path(__file__).parents[2]
SOURCES = [
    path
    for folder in ("pipeline", "db", "benchmarks", "scripts")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if not str(path.relative_to(ROOT)).startswith(("pipeline/backends/", "pipeline/verifier/contestant/"))
]
"""The contestant knows devices and no backends."""
KNOWN = frozenset(names())
NAMES = "|".join(KNOWN)
IN_A_SENTENCE = re.compile(
    rf"\b({NAMES}) backends?\b"
    rf"|\bbackends?\W{{1,4}}(?:is |are |= ?)?['\"`]?({NAMES})\b"
    rf"|--backend \W?({NAMES})\b"
)
"""Within a longer text: `the cuda backend`, `--backend cpp`, `backend = 'cuda'`."""
NEIGHBOURS = {"cpu", "torch", "c++"}
"""A list or a table that holds one of these beside the word lists devices, versions or languages."""


def constants(node: ast.AST) -> Iterator[ast.Constant]:
    return (each for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str))


def documentation(tree: ast.Module) -> set[int]:
    """Texts that stand alone: docstrings, and descriptions of fields and constants."""
    return {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}


def devices(tree: ast.Module) -> set[int]:
    """Constants that are a device's name, a version's or a language's."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            spoken = {ast.unparse(side).split(".")[-1].strip("_") for side in sides}
            found |= set(map(id, sides)) if spoken & {"type", "device"} else set()
        elif isinstance(node, ast.IfExp | ast.Dict | ast.Set | ast.Tuple | ast.List):
            words = {each.value for each in constants(node)}
            found |= set(map(id, constants(node))) if words & NEIGHBOURS else set()
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("Column", "optional", "needed")):
            found |= set(map(id, node.args))
    return found


def by_name(source: str) -> list[str]:
    """Where a module names a backend: `line: text`."""
    if re.search(NAMES, source) is None:
        return []
    tree = ast.parse(source)
    left_out = documentation(tree) | devices(tree)
    return [
        f"{each.lineno}: {each.value}"
        for each in constants(tree)
        if id(each) not in left_out and (each.value in KNOWN or IN_A_SENTENCE.search(str(each.value)))
    ]


def test_no_other_module_names_one() -> None:
    assert by_name('if settings.backend == "cuda": pass')
    known = {str(path.relative_to(ROOT)): by_name(path.read_text()) for path in SOURCES}
    assert {path: where for path, where in known.items() if where} == {}

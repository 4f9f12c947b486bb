"""A backend is an object in one module: nobody else knows the names, and a package outside can add one."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.backends import all_backends, backend, names
from pipeline.errors import UsageError
from pipeline.types import VerifySettings

ROOT = Path(__file__).parents[2]
SOURCES = [
    path
    for folder in ("pipeline", "db", "benchmarks", "scripts")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path.relative_to(ROOT).parts[:2] not in (("pipeline", "backends"), ("pipeline", "contestant"))
]
"""The contestant knows devices, which torch names, and no backends."""


def said_of_a_backend(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute | ast.Name) and "backend" in ast.unparse(node).split(".")[-1]


def is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value in names()


def by_name(tree: ast.Module) -> list[ast.AST]:
    """Where a module decides something by a backend's name: compares one, or keeps a table by them."""
    found: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(map(is_name, [node.left, *node.comparators])):
            found += [node] if any(map(said_of_a_backend, [node.left, *node.comparators])) else []
        elif isinstance(node, ast.Dict) and sum(key is not None and is_name(key) for key in node.keys) > 1:
            found.append(node)
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal":
            found += [node] if any(map(is_name, ast.walk(node.slice))) else []
    return found


def test_no_other_module_knows_their_names() -> None:
    known = {str(path.relative_to(ROOT)): by_name(ast.parse(path.read_text())) for path in SOURCES}
    assert {path: list(map(ast.unparse, where)) for path, where in known.items() if where} == {}


def test_what_the_search_would_find() -> None:
    text = 'if settings.backend == "cuda": pass\nX = {"cuda": 1, "cpp": 2}\ny: Literal["cpp"]\n'
    assert len(by_name(ast.parse(text))) == 3


@pytest.mark.parametrize("name", names())
def test_each_has_a_prompt_example_and_a_finding_of_its_own(name: str) -> None:
    example = (ROOT / "prompts" / "examples" / f"{name}.py").read_text()
    assert backend(name).holds_own_code(example)
    assert not backend(name).holds_own_code("import torch\n")
    assert VerifySettings(backend=name).backend == name


def test_an_unknown_one_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="no backend 'cdua'; there are: cuda, cpp"):
        backend("cdua")
    with pytest.raises(ValueError, match="there are: cuda, cpp"):
        VerifySettings(backend="cdua")


def test_the_preferred_ones_are_first() -> None:
    assert names() == ("cuda", "cpp")
    assert [each.on_gpu for each in all_backends().values()] == [True, False]


def test_a_package_outside_adds_one(tmp_path: Path) -> None:
    """Into the options, the settings and the policy, from an entry point alone."""
    (tmp_path / "opencl_backend.py").write_text(
        "from dataclasses import replace\n"
        "from pipeline.backends.cpp import BACKEND as CPP\n"
        'BACKEND = replace(CPP, name="opencl", order=9, own_code="a `__kernel`",\n'
        '                  holds_own_code=lambda text: "__kernel" in text)\n'
    )
    info = tmp_path / "opencl_backend-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: opencl-backend\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[kernelproof.backends]\nopencl = opencl_backend:BACKEND\n")
    program = (
        "import json, sys\n"
        "from pipeline.backends import names\n"
        "from pipeline.devices.discovery import device_for\n"
        "from pipeline.types import VerifySettings\n"
        "print(json.dumps([names(), VerifySettings(backend='opencl').backend, device_for('opencl')]))\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [["cuda", "cpp", "opencl"], "opencl", "cpu"]
    told = subprocess.run(
        [sys.executable, "-c", "from pipeline.cli.app import main; main()", "verify", "--help"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "<auto|cuda|cpp|opencl>" in told.stdout

"""One import name: whatever the program is, it is `kernelproof.something`, and each file is one module."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import kernelproof

ROOT = Path(__file__).parents[1]
OLD = {"pipeline", "db", "prompts", "reference_models"}
FOLDERS = (*sorted(OLD), "tests", "benchmarks", "scripts")
IMPORT_ALL = """
import json, pkgutil, sys
from importlib import import_module
import kernelproof
NEED_PACKAGES = ("kernelproof.trainers.skyrl", "kernelproof.trainers.openenv")
for found in pkgutil.walk_packages(kernelproof.__path__, "kernelproof."):
    top = found.name.split(".")[1]
    if top not in ("prompts", "reference_models") and not found.name.endswith("__main__"):
        if found.name not in NEED_PACKAGES:
            import_module(found.name)
print(json.dumps({name: getattr(module, "__file__", None) for name, module in sys.modules.items()}))
"""
"""Run in the root of the repository, where `import pipeline` would find the folder. Two modules are left out:
each defines a class of a trainer's package, and tests/trainers imports it where that is installed."""


def imported(path: Path) -> set[str]:
    """The top-level names that a file imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.ci
def test_no_file_imports_a_folder_by_its_own_name() -> None:
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    assert len(files) > 1000
    bad = {str(file.relative_to(ROOT)): imported(file) & OLD for file in files if "/bad/" not in str(file)}
    assert {name: names for name, names in bad.items() if names} == {}


@pytest.mark.ci
def test_every_file_is_one_module() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    modules: dict[str, str | None] = json.loads(done.stdout)
    files = {name: Path(file).resolve() for name, file in modules.items() if file}
    ours = {name: file for name, file in files.items() if {ROOT / folder for folder in OLD} & {*file.parents}}
    assert {"kernelproof.cli.app", "kernelproof.api", "kernelproof.db.store"} <= ours.keys()
    assert {name.partition(".")[0] for name in ours} == {"kernelproof"}
    assert OLD & modules.keys() == set()
    assert len(set(ours.values())) == len(ours)


def test_the_names_lead_to_the_folders() -> None:
    package = Path(kernelproof.__file__).parent
    assert package.resolve() == ROOT / "pipeline", f"these tests run another checkout's program: {package}"
    for name in ("db", "prompts", "reference_models"):
        assert (package / name).resolve() == ROOT / name

"""docs/architecture.md names the packages that there are, and the layers that import-linter holds."""

from __future__ import annotations

import re
import tomllib
from importlib.util import find_spec
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
PACKAGE = r"`((?:kernelproof\.(?:verifier\.)?)?\w+)`"


def packages(heading: str = "## Packages") -> set[str]:
    """The packages in the first column of the table below a heading."""
    table = PAGE.partition(heading)[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (.+?) \|", table, re.MULTILINE)
    return {package for cell in cells for package in re.findall(PACKAGE, cell)}


def test_every_package_named_exists() -> None:
    assert packages()
    assert [package for package in sorted(packages()) if find_spec(package) is None] == []


def test_every_module_of_the_package_is_named() -> None:
    there = {
        f"kernelproof.{entry.stem}"
        for entry in (ROOT / "src" / "kernelproof").iterdir()
        if entry.suffix == ".py" or (entry / "__init__.py").exists()
    } - {"kernelproof.verifier"}
    there |= {f"kernelproof.verifier.{entry.name}" for entry in (ROOT / "pipeline/verifier").glob("[!_]*/")}
    beside = {"kernelproof.prompts", "kernelproof.reference_models"}  # texts, no code
    assert there - {"kernelproof.__init__", "kernelproof.__main__"} - beside == packages()


def test_each_package_is_said_to_run_in_the_processes_that_import_it() -> None:
    graph = grimp.build_graph("kernelproof", cache_dir=None)
    starts = {
        "orchestrator": "kernelproof.cli",
        "referee": "kernelproof.verifier.referee.__main__",
        "contestant": "kernelproof.verifier.contestant.main",
        "canary": "kernelproof.verifier.canary.__main__",
    }
    imported = {
        process: {
            ".".join(module.split(".")[: 3 if module.startswith("kernelproof.verifier.") else 2])
            for module in {start, *graph.find_upstream_modules(start, as_package=True)}
        }
        for process, start in starts.items()
    }
    table = PAGE.partition("## Packages")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`kernelproof.+?) \| (.+?) \|", table, re.MULTILINE)
    assert rows
    for packages_of_row, said in rows:
        for package in re.findall(PACKAGE, packages_of_row):
            there = [process for process, modules in imported.items() if package in modules]
            assert [word for word in said.split(", ") if word in starts] == there, package


def test_every_package_of_the_referee_is_named() -> None:
    there = {
        folder.parent.name for folder in (ROOT / "pipeline" / "verifier" / "referee").glob("*/__init__.py")
    }
    assert packages("## Inside the referee") == there


def test_the_layers_are_the_contract_s() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    whole, core = [contract["layers"] for contract in contracts if contract["type"] == "layers"][:2]
    table = PAGE.partition("<!-- layers -->")[2]
    rows = re.findall(r"^\| \d+ \| (.+) \|$", table, re.MULTILINE)

    assert [re.findall(PACKAGE, row) for row in rows] == [layer.split(" | ") for layer in (*whole, *core)]


def test_the_files_to_read_are_there() -> None:
    page = (ROOT / "docs" / "verifier.md").read_text()
    core = ROOT / "pipeline" / "verifier"
    named = re.findall(r"`([a-z_]+/[a-z_/]*\.py)`", page)
    there = (core, ROOT)
    assert len(named) > 20
    assert [name for name in named if not any((place / name).exists() for place in there)] == []

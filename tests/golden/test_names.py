"""Names that are stored, or that people and programs write, stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernelproof.backends import BACKENDS
from kernelproof.providers.protocol import PROVIDERS
from kernelproof.registry import Registry
from kernelproof.runs.strategies.protocol import STRATEGIES
from tests.cli.program import Program
from tests.golden import names
from tests.golden.loading import FIXED, load
from tests.plugins import install


@pytest.mark.parametrize("part", sorted(names.PARTS))
def test_they_are_what_they_were(part: str) -> None:
    assert names.PARTS[part]() == load("names.json")[part], FIXED


@pytest.mark.parametrize("path", load("names.json")["imports"])
def test_documented_imports_work(path: str) -> None:
    module = path.partition(":")[0]
    pytest.importorskip(EXTRA.get(module, "kernelproof"), reason="it is for that package")
    assert names.resolved(path) is not None


EXTRA = {"kernelproof.trainers.openenv": "openenv", "kernelproof.trainers.skyrl": "skyrl_gym"}
"""Modules that work only where the trainer's package is installed."""


def test_other_packages_are_found_by_the_documented_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = [group.rpartition(".")[2] for group in load("names.json")["entry points"]["groups"]]
    points = {group: {"golden": "golden_package:Thing"} for group in groups}
    monkeypatch.syspath_prepend(install(tmp_path / "packages", "golden_package", "", **points))
    registries: dict[str, Registry[Any]] = {
        "backends": BACKENDS,
        "providers": PROVIDERS,
        "strategies": STRATEGIES,
    }
    assert groups == sorted(registries)
    assert [group for group in groups if "golden" not in registries[group].names()] == []


def test_documented_variables_are_read() -> None:
    code = "".join(path.read_text() for path in (names.ROOT / "pipeline").rglob("*.py"))
    assert [name for name in load("names.json")["variables"] if f'"{name}"' not in code] == []


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("show", 1_000_000), "UsageError"),
        (("leaderboard", "--workspace", "nowhere"), "NothingStored"),
        (("db", "check", "--db", "broken.sqlite"), "StoreError"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_command_ends_with_the_code_of_its_error(
    words: tuple[object, ...], error: str, program: Program
) -> None:
    (program.workspace / "broken.sqlite").write_bytes(b"this is no database" * 1000)
    program.run(*words, code=load("names.json")["exit codes"][error])

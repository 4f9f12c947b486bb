"""docs/architecture.md names the rooms that there are, and the layers that import-linter holds."""

from __future__ import annotations

import re
import tomllib
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
ROOM = r"`((?:pipeline\.)?\w+)`"


def rooms(heading: str = "## Rooms") -> set[str]:
    """The rooms in the first column of the table below a heading."""
    table = PAGE.partition(heading)[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (.+?) \|", table, re.MULTILINE)
    return {room for cell in cells for room in re.findall(ROOM, cell)}


def test_every_room_named_exists() -> None:
    assert rooms()
    assert [room for room in sorted(rooms()) if find_spec(room) is None] == []


def test_every_module_of_the_pipeline_is_named() -> None:
    there = {
        f"pipeline.{entry.stem}"
        for entry in (ROOT / "pipeline").iterdir()
        if entry.suffix == ".py" or (entry / "__init__.py").exists()
    }

    assert there - {"pipeline.__init__"} == rooms() - {"db"}


def test_every_room_of_the_referee_is_named() -> None:
    there = {folder.parent.name for folder in (ROOT / "pipeline" / "referee").glob("*/__init__.py")}
    assert rooms("## Inside the referee") == there


def test_the_layers_are_the_contract_s() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    table = PAGE.partition("<!-- layers -->")[2]
    rows = re.findall(r"^\| \d+ \| (.+) \|$", table, re.MULTILINE)

    assert [re.findall(ROOM, row) for row in rows] == [layer.split(" | ") for layer in layers]

"""docs/reference/settings.md lists the settings as the program has them, with their defaults."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_type_hints

import pytest
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from kernelproof.cli.options import SETTINGS
from kernelproof.runs.config import SENT_AS, BatchConfig
from kernelproof.types import RunSettings, VerifySettings

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "settings.md").read_text()


def rows(heading: str) -> dict[str, str]:
    """Setting to default, as the table below a heading has them."""
    table = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", table, re.MULTILINE))


def shown(default: object) -> str:
    """A default as the page writes it; empty for what has none or is a record of its own."""
    if default is PydanticUndefined or isinstance(default, BaseModel):
        return ""
    if default is None or default == ():
        return "none"
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, str):
        return f"`{default}`"
    if isinstance(default, int) and default >= 1 << 30:
        return f"{default >> 30} GiB"
    return f"{default:g}" if isinstance(default, int | float) else "empty"


@pytest.mark.parametrize(
    ("heading", "record"),
    [("Settings of a verification", VerifySettings), ("Settings of a run", RunSettings)],
    ids=["verification", "run"],
)
def test_the_table_is_the_record(heading: str, record: type[BaseModel]) -> None:
    defaults = {
        name: "empty" if field.default_factory else shown(field.default)
        for name, field in record.model_fields.items()
    }

    assert rows(heading) == defaults


_HINTS = get_type_hints(BatchConfig, include_extras=True)
_OPTIONS = [name for name, hint in _HINTS.items() if hasattr(hint, "__metadata__")]
_SETS = {"run": "name", "params": "sampling"} | dict.fromkeys(SENT_AS, "sampling")
OF_A_RUN = {
    {"params": "param"}.get(option, option): setting
    for option in _OPTIONS
    if (setting := _SETS.get(option, option)) in RunSettings.model_fields
}
"""Option to setting. The other options say how a run is made, and are no settings of it."""


def options(heading: str) -> dict[str, str]:
    """Setting to the last cell of its row: the options."""
    table = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| `(\w+)` \|.*\| ?([^|]*?) ?\|$", table, re.MULTILINE))


@pytest.mark.parametrize(
    ("heading", "declared"),
    [
        ("Settings of a verification", SETTINGS),
        ("Settings of a run", OF_A_RUN),
    ],
    ids=["verification", "run"],
)
def test_the_options_are_those_that_are_declared(heading: str, declared: dict[str, str]) -> None:
    shown = options(heading)
    assert set(declared.values()) <= set(shown)
    assert shown == {
        setting: ", ".join(f"`--{name.replace('_', '-')}`" for name, of in declared.items() if of == setting)
        for setting in shown
    }

"""Options are declared once: their settings are those that the records have, with the same defaults."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from kernelproof.choices import TRIALS, Rigor
from kernelproof.cli.declaring import Option, takes_options
from kernelproof.cli.options import SETTINGS, VerifyOptions
from kernelproof.types import VerifySettings

BY_THE_MACHINE = {"backend", "size"}
"""Settings whose default on the command line depends on the devices that are there."""


def test_every_option_of_a_verification_has_the_default_of_its_setting() -> None:
    records = VerifySettings.model_fields
    defaults = {setting: getattr(VerifyOptions(), option) for option, setting in SETTINGS.items()}
    assert set(defaults) <= set(records)
    for setting in set(defaults) - BY_THE_MACHINE:
        assert (defaults[setting] or None) == (records[setting].default or None), setting


@pytest.mark.parametrize(
    ("given", "setting", "value"),
    [
        ({"seconds": 3.5}, "measure_seconds", 3.5),
        ({"trials": 7}, "trials", 7),
        ({"measure": False}, "measure", False),
        ({"rigor": Rigor.QUICK}, "rigor", Rigor.QUICK),
        ({"baseline": ["max-autotune", "compile", "compile"]}, "baselines", ("compile", "max-autotune")),
        ({"numerics": "tf32"}, "numerics", "tf32"),
        ({"purity": "own-compute"}, "purity", "own-compute"),
        ({"own_kernel": False}, "own_kernel", False),
        ({"unsafe": True}, "unsafe", True),
        ({"size": "small"}, "size", "small"),
    ],
)
def test_each_option_sets_its_setting_and_no_other(
    given: dict[str, object], setting: str, value: object
) -> None:
    plain = VerifyOptions(backend="cpp").settings([])
    (name,) = given
    assert SETTINGS[name] == setting
    assert VerifyOptions(backend="cpp", **given).settings([]) == plain.model_copy(update={setting: value})


@dataclass(frozen=True)
class Paint:
    """Two options of a command."""

    colour: Annotated[str, Option("What it is painted with.", words=("red", "green"))]
    coats: Annotated[int, Option("How many times.", TRIALS)] = 1


@takes_options
def paint(wall: str, *, chosen: Paint, dry: bool = False) -> None:
    """Paint a wall."""
    typer.echo(f"{wall} {chosen} {dry}")


def run(*words: str) -> tuple[int, str]:
    app = typer.Typer(rich_markup_mode=None)
    app.command()(paint)
    result = CliRunner().invoke(app, words)
    return result.exit_code, result.output


def test_a_command_takes_the_options_of_a_class() -> None:
    assert run("north", "--colour", "red", "--dry") == (0, "north Paint(colour='red', coats=1) True\n")
    assert run("north", "--colour", "red", "--coats", "2") == (
        0,
        "north Paint(colour='red', coats=2) False\n",
    )
    code, said = run("--help")
    assert code == 0 and "Paint a wall." in said
    assert all(f"--{field.name}" in said for field in fields(Paint)) and "<red|green>" in said


def test_a_word_that_is_none_of_the_choices_is_told_in_one_line() -> None:
    code, said = run("north", "--colour", "gren")
    assert code == 2
    assert "Invalid value for '--colour': 'gren' is not one of 'red', 'green'; did you mean 'green'?" in said
    assert "is not one of 'red', 'green'.\n" in run("north", "--colour", "blue")[1]
    assert run("north")[0] == 2

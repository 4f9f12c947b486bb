"""docs/reference/cli.md shows the help texts that the commands print, and leaves no command out."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
from pathlib import Path
from types import ModuleType

import pytest
from typer.main import get_command

from kernelproof.cli.app import command_line

ROOT = Path(__file__).parents[2]


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("cli_docs", ROOT / "scripts" / "cli_docs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


cli_docs = load_script()
BLOCKS = {found["command"]: found["body"] for found in cli_docs.BLOCK.finditer(cli_docs.PAGE.read_text())}


def commands() -> set[str]:
    """Every command that can be run, `problems list` among them; the groups too."""
    found = {""}
    for name, command in get_command(command_line()).commands.items():
        found.add(name)
        found.update(f"{name} {inner}" for inner in getattr(command, "commands", {}))
    return found


def words(text: str) -> list[str]:
    """Without line breaks and runs of blanks, which differ between versions of the library that wraps."""
    return re.sub(r"-\n\s+", "-", text).split()


def test_every_command_has_a_block() -> None:
    assert set(BLOCKS) == commands()


@pytest.mark.few(14)
@pytest.mark.parametrize("command", sorted(BLOCKS))
def test_the_help_is_what_the_program_prints(command: str) -> None:
    shown = BLOCKS[command].partition("--help\n")[2].removesuffix("```\n")

    assert words(shown) == words(help_here(command)), "run: python scripts/cli_docs.py"


def test_a_process_prints_the_same() -> None:
    assert cli_docs.help_of("problems list") == help_here("problems list")


def help_here(command: str) -> str:
    """What `cli_docs.help_of` gives, without a process."""
    shown = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(shown):
        patch.setenv("COLUMNS", "80")
        patch.setenv("NO_COLOR", "1")
        command_line()([*command.split(), "--help"], prog_name="kernelproof", standalone_mode=False)
    return shown.getvalue().rstrip()

"""Runs `kernelproof problems import`, and says what a directory holds."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner, Result

from kernelproof.cli.problems import problems_app
from kernelproof.errors import KernelproofError


def imports(source: Path | str, to: Path, *options: str) -> Result:
    """What the command does."""
    return CliRunner().invoke(problems_app, ["import", str(source), "--to", str(to), *options])


def refusal(source: Path | str, to: Path, *options: str) -> str:
    """The one line with which the command refuses; nothing may be left of it."""
    before = held(to.parent)
    result = imports(source, to, *options)
    assert isinstance(result.exception, KernelproofError), result.output
    assert held(to.parent) == before
    assert "\n" not in str(result.exception)
    return str(result.exception)


def held(folder: Path) -> set[str]:
    """All files and directories below."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}

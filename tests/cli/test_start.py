"""Starting: what stops a command before it begins, and what is imported for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import PROGRAM, Program


def test_a_full_disk_is_told(program: Program) -> None:
    with Path("/dev/full").open("w") as full:
        done = run_as(program, *PROGRAM, "problems", "list", stdout=full)
    assert done.returncode == 3
    assert done.stderr.startswith("kernelproof: ") and "make room" in done.stderr


def test_a_directory_that_is_gone_is_told(program: Program, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = f"import os; os.rmdir({str(gone)!r}); {PROGRAM[-1]}"
    done = run_as(program, *PROGRAM[:-1], code, "leaderboard", cwd=gone)
    assert done.returncode == 2
    assert "the current directory is gone" in done.stderr


def run_as(program: Program, *command: str, **where: Any) -> subprocess.CompletedProcess[str]:
    """A command outside of any workspace."""
    environment = {k: v for k, v in program.environment.items() if k != "KERNELPROOF_WORKSPACE"}
    return subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, check=False, **where)


def printed(code: str) -> list[str]:
    """The words on the last line that a fresh Python prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1].split()


def test_the_command_line_starts_without_heavy_modules() -> None:
    code = "import sys\nfrom kernelproof.cli.app import command_line\ncommand_line()\nprint(*sys.modules)"
    heavy = {"torch", "sqlalchemy", "alembic", "openai", "pydantic", "anyio", "numpy"}
    assert heavy & set(printed(code)) == set()


@pytest.mark.parametrize("words", [("--version",), ("runs", "tag", "--help"), ("db", "check", "--help")])
def test_a_command_imports_no_other_command(words: tuple[str, ...]) -> None:
    code = (
        f"import sys\nfrom kernelproof.cli import app\nsys.argv[1:] = {[*words]!r}\n"
        "try: app.main()\n"
        "finally: print('-', *(name for name in app.COMMANDS if f'kernelproof.cli.{name}' in sys.modules))"
    )
    assert printed(code) == ["-", *(word for word in words[:1] if not word.startswith("-"))]


def test_the_orchestrator_never_imports_torch() -> None:
    code = "import kernelproof.runs.batch, kernelproof.api, kernelproof.doctor, sys; print(*sys.modules)"
    assert "torch" not in printed(code)

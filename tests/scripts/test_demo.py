"""What `make demo` offers at its end can be run: the commands, the files and the packages are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernelproof.cli.app import COMMANDS
from scripts.demo import next_steps

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("backend", ["cpp", "cuda"])
def test_the_next_steps_can_be_taken(backend: str) -> None:
    lines = next_steps(backend)
    commands = [re.search(r"\.venv/bin/kernelproof (\S+)", line) for line in lines]
    assert {"report", "serve", "verify"} <= {found[1] for found in commands if found} <= set(COMMANDS)
    assert all(commands)
    files = re.findall(r"prompts/\S+", "\n".join(lines))
    assert len(files) == 2 and all((ROOT / file).is_file() for file in files)


def test_the_demo_installs_what_its_next_steps_need() -> None:
    recipe = (ROOT / "Makefile").read_text().partition("\n.venv/demo.installed:")[2].partition("\n\n")[0]
    assert "scripts/install.sh serve\n" in recipe

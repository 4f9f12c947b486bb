"""Daemons of every kind are killed while they work: is anything lost, or judged twice?

At the end every evaluation has to have its result, each stored once, and `kernelproof db check` must find
nothing. How the kills come: `tests/service/killing.py`.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path

from benchmarks.evidence import table
from kernelproof.devices.locks import DIRECTORY_VARIABLE
from tests.cli import material
from tests.cli.program import Program
from tests.service.killing import killing


def run(kills: int, seed: int, output: Path) -> None:
    """Kills so many daemons; prints, writes JSON. Raises AssertionError where something is wrong."""
    with tempfile.TemporaryDirectory(prefix="kernelproof-kills-") as folder:
        root = Path(folder)
        root.chmod(0o711)
        for name in ("workspace", "temporary", "cache"):
            (root / name).mkdir()
        os.environ.setdefault(DIRECTORY_VARIABLE, str(root / "locks"))
        program = Program(root / "workspace", root / "temporary", root / "cache")
        found = killing(
            program, material.problems(root / "suite"), kills, seed, say=lambda text: print(text, flush=True)
        )
    print(table(("figure", "value"), [(name, str(value)) for name, value in asdict(found).items()]))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(asdict(found), indent=1) + "\n")
    print(f"written to {output}")
    assert found.is_sound, "something was lost, or is stored twice"

"""Daemons of every kind are killed while they work: is anything lost, or judged twice?

At the end every evaluation has to have ended once, as it should, with a token whose lease was not lost; each
taking has to have its end; and `kernelproof db check` must find nothing. How the kills come, and which
daemons have a stand-in for the slow part of their work: `tests/service/killing.py` and `mortal.py` there.
Ctrl-C ends the killing: then the figures are of the kills until there.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path

from benchmarks.evidence import table
from kernelproof.verifier.devices.locks import DIRECTORY_VARIABLE
from tests.cli import material
from tests.cli.program import Program
from tests.service.killing import REAL, STAND_INS, killing


def run(kills: int, seed: int, output: Path) -> None:
    """Kills so many daemons; prints, writes JSON. Raises AssertionError where something is wrong."""
    with tempfile.TemporaryDirectory(prefix="kernelproof-kills-") as folder:
        root = Path(folder)
        root.chmod(0o711)
        for name in ("workspace", "temporary", "cache"):
            (root / name).mkdir()
        os.environ.setdefault(DIRECTORY_VARIABLE, str(root / "locks"))
        program = Program(root / "workspace", root / "temporary", root / "cache")
        print(f"daemons as users have them: {REAL}; with a stand-in engine: {STAND_INS}", flush=True)
        suite = material.problems(root / "suite")
        found = killing(program, suite, kills, seed, say=lambda text: print(text, flush=True))
    load = f"{os.getloadavg()[0]:.1f}"
    rows = [(name, str(value)) for name, value in asdict(found).items() if name != "wrong"]
    print(table(("figure", "value"), [*rows, ("load average at the end", load)]))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(asdict(found), indent=1) + "\n")
    print(f"written to {output}")
    for each in found.wrong[:20]:
        print(f"wrong: {each}")
    assert found.is_sound, "something was lost, is stored twice, or has a verdict from a lost lease"
    print(
        "each evaluation ended once, as it should; the takings are verdicts, builds, losses and what was "
        "given back; no verdict has a token whose lease was lost"
    )

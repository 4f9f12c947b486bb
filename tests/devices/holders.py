"""Processes that hold the lock on a device, and say so: what the tests of the lock and of its lease start."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEY = "GPU-00000000-1111-2222-3333-444444444444"
HOLD = f"""
import sys
from kernelproof.verifier.devices import locks as exclusive
with exclusive.held({KEY!r}, lambda text: print(text, flush=True)) as note:
    print(note or "held", flush=True)
    sys.stdin.readline()
"""

Holder = subprocess.Popen[str]


def line(process: Holder) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def let_go(process: Holder) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()

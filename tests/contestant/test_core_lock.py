"""A contestant stays on the cores that it was given, whatever runs in it asks for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MINE = sorted(os.sched_getaffinity(0))
ASKING = """
import json, os, sys, threading
from kernelproof.verifier.contestant.main import hold_to_cores, lock_cores

one, all_of_them = json.loads(sys.argv[1])
seen = []
told = threading.Event()

def look():
    told.wait()
    seen.append(sorted(os.sched_getaffinity(0)))

early = threading.Thread(target=look)
early.start()
hold_to_cores(one)
if not lock_cores():
    sys.exit("this kernel cannot")

def ask():
    os.sched_setaffinity(0, all_of_them)
    seen.append(sorted(os.sched_getaffinity(0)))

told.set()
early.join()
ask()
thread = threading.Thread(target=ask)
thread.start()
thread.join()
if os.fork() == 0:
    ask()
    os._exit(0 if seen[-1] == one else 1)
seen.append(one if os.wait()[1] == 0 else [])
print(json.dumps(seen))
"""


@pytest.mark.skipif(len(MINE) < 2, reason="needs two cores: one to be held to, one to ask for")
def test_nothing_in_it_takes_another_core() -> None:
    wanted = json.dumps([MINE[:1], MINE])
    done = subprocess.run(
        [sys.executable, "-c", ASKING, wanted],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [MINE[:1]] * 4

"""Several processes use one database at once; a killed one leaves whole transactions."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernelproof.db.store import Store, open_store
from kernelproof.types import Status
from kernelproof.workspace import DatabasePlace, address
from tests.db import samples
from tests.db.soundness import sound

WRITE = """
import sys
from kernelproof.db.store import open_store
from kernelproof.workspace import database_place
from tests.db import samples
with open_store(database_place(sys.argv[1])) as store:
    for sample in range(int(sys.argv[2])):
        samples.judge(store, samples.problem(), samples.settings(), speedup=2.0, sample=sample)
        print(sample, flush=True)
"""

WRITE_FINISHED = """
import sys
from kernelproof.db.store import open_store
from kernelproof.types import Status
from kernelproof.workspace import database_place
from tests.db import samples
judged = samples.verification(samples.problem(), speedup=2.0)
answer, found = samples.response(), samples.extraction()
with open_store(database_place(sys.argv[1])) as store:
    for number in range(int(sys.argv[2])):
        store.add_finished(
            samples.settings(), samples.problem(), answer, found, judged, Status.CORRECT
        )
        print(number, flush=True)
"""


def writer(place: DatabasePlace, count: int, program: str = WRITE) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, address(place), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(process: subprocess.Popen[str], seconds: float) -> None:
    """Waits for a writer, which may have had to wait for others but must not fail."""
    said = process.communicate(timeout=seconds)[1].splitlines()
    assert all(line.endswith("waiting for it, 120 s at most") for line in said), said
    assert process.returncode == 0


@pytest.mark.ci
def test_processes_that_make_the_database_and_the_same_attempts_at_once(tmp_path: Path) -> None:
    path = tmp_path / "db" / "attempts.sqlite"
    processes = [writer(path, 25) for _ in range(4)]
    for process in processes:
        finished(process, 120)
    with open_store(path) as store:
        assert store.begin_run(samples.settings()) == 1
        states = store.attempts_of(1)
        assert sorted(key.sample for key in states) == list(range(25))
        # Each process appended its own answer and verification: none is lost.
        for state in states.values():
            attempt = store.load_attempt(state.id)
            assert len(attempt.responses) == len(attempt.verifications) == 4
        assert store.scores.leaderboard().models[0].correct.part == 25


@pytest.mark.ci
@pytest.mark.parametrize("program", [WRITE, WRITE_FINISHED], ids=["steps", "finished"])
def test_a_killed_writer_leaves_only_whole_transactions(tmp_path: Path, program: str) -> None:
    path, lines = tmp_path / "attempts.sqlite", 0
    for more in (1, 5, 9):
        process = writer(path, 1000, program)
        assert process.stdout is not None
        for _ in range(more):
            lines += process.stdout.readline() != ""
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert lines == 15
    with open_store(path) as store:
        states = store.attempts_of(1)
        assert sorted(key.sample for key in states) == list(range(len(states)))
        assert len(states) >= (15 if program == WRITE_FINISHED else 9)
        for state in states.values():
            attempt = store.load_attempt(state.id)
            assert all(len(v.verification.checks) == 1 for v in attempt.verifications)
            assert all(v.verification.measurement for v in attempt.verifications)
            if program == WRITE_FINISHED:
                assert state.status is Status.CORRECT and state.has_response and state.has_verification
    sound(path)


def test_a_write_waits_for_another_processs_lock(store: Store) -> None:
    hold = (
        "import sqlite3, sys, time; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('BEGIN IMMEDIATE'); print('held', flush=True); time.sleep(1);"
        "print(time.monotonic()); c.execute('COMMIT')"
    )
    command = [sys.executable, "-c", hold, str(store.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        store.add_problem(samples.problem())
        written = time.monotonic()
        assert written > float(holder.stdout.readline()), "before the lock was given up"
    assert holder.returncode == 0

"""Several processes use one database at once; a killed one leaves whole transactions."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernelproof.db.store import Store, open_store
from kernelproof.types import Status
from kernelproof.workspace import DatabasePlace, address
from tests.db import samples
from tests.db.conftest import BOTH
from tests.db.soundness import sound

STORES = BOTH
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


@pytest.mark.parametrize(
    "each", [pytest.param(3, marks=pytest.mark.ci), pytest.param(100, marks=pytest.mark.slow)]
)
def test_sixteen_writers_at_once_lose_no_row(store: Store, each: int) -> None:
    processes = [writer(store.place, each, WRITE_FINISHED) for _ in range(16)]
    for process in processes:
        finished(process, 280)
    (run_id,) = store.runs_named("1")
    states = store.attempts_of(run_id)
    assert sorted(key.sample for key in states) == list(range(16 * each))
    assert all(state.status is Status.CORRECT and state.has_verification for state in states.values())
    sound(store.place)


@pytest.mark.ci
def test_a_killed_writer_leaves_only_whole_transactions(tmp_path: Path) -> None:
    path = tmp_path / "attempts.sqlite"
    finished = 0
    for lines in (1, 7, 12):
        process = writer(path, 1000)
        assert process.stdout is not None
        for _ in range(lines):
            finished = max(finished, int(process.stdout.readline()) + 1)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    with open_store(path) as store:
        states = store.attempts_of(1)
        assert len(states) >= finished
        for state in states.values():
            attempt = store.load_attempt(state.id)
            assert attempt.alterations == ()
            assert all(len(v.verification.checks) == 1 for v in attempt.verifications)
            assert all(v.verification.measurement for v in attempt.verifications)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()


@pytest.mark.ci
def test_a_killed_writer_of_finished_attempts_leaves_none_without_an_end(tmp_path: Path) -> None:
    path = tmp_path / "attempts.sqlite"
    for lines in (1, 4, 9):
        process = writer(path, 1000, WRITE_FINISHED)
        assert process.stdout is not None
        for _ in range(lines):
            assert process.stdout.readline() != ""
        process.send_signal(signal.SIGKILL)
        process.communicate()
    with open_store(path) as store:
        states = store.attempts_of(1)
        assert len(states) >= 14
        assert sorted(key.sample for key in states) == list(range(len(states)))
        for state in states.values():
            assert (state.status, state.has_response) == (Status.CORRECT, True)
            assert state.has_candidate and state.has_verification


def test_a_write_waits_for_another_processs_lock(store: Store) -> None:
    if not isinstance(store.place, Path):
        pytest.skip("the lock of a file")
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

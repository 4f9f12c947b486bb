"""Several processes use one database at once and lose no row; a killed one leaves whole transactions."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy.orm import Session

from kernelproof.db import records
from kernelproof.db.attempts import Finished
from kernelproof.db.leases import new_owner
from kernelproof.db.store import Store, open_store
from kernelproof.types import Status
from kernelproof.workspace import DatabasePlace, address
from tests.db import samples, sql
from tests.db.conftest import BOTH
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
from kernelproof.db.attempts import Finished
from kernelproof.db.store import open_store
from kernelproof.types import Status
from kernelproof.workspace import database_place
from tests.db import samples
judged = samples.verification(samples.problem(), speedup=2.0)
answer, found = samples.response(), samples.extraction()
with open_store(database_place(sys.argv[1])) as store:
    for number in range(int(sys.argv[2])):
        store.add_finished(
            Finished(samples.settings(), samples.problem(), answer, found, judged, Status.CORRECT)
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


def test_a_write_waits_for_another_processs_lock(tmp_path: Path) -> None:
    path = tmp_path / "attempts.sqlite"
    hold = (
        "import sqlite3, sys, time; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('BEGIN IMMEDIATE'); print('held', flush=True); time.sleep(1);"
        "print(time.monotonic()); c.execute('COMMIT')"
    )
    command = [sys.executable, "-c", hold, str(path)]
    with (
        open_store(path) as store,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder,
    ):
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        store.add_problem(samples.problem())
        written = time.monotonic()
        assert written > float(holder.stdout.readline()), "before the lock was given up"
    assert holder.returncode == 0


STORES = BOTH
WRITERS, EACH = 16, 4


def write(place: DatabasePlace, own: int) -> None:
    """The work of commands that run side by side: new attempts, judging again, retracting, tags, leases."""
    run, of = samples.settings(f"vendor:{own % 4}"), samples.problem(own % 3 + 1)
    with open_store(place, create=False) as store:
        for number in range(EACH):
            attempt, first = samples.judge(store, of, run, speedup=2.0, sample=own * EACH + number)
            owner = new_owner()
            assert store.leases.take(owner, f"attempt:{attempt}")
            store.record_verification(attempt, samples.verification(of, speedup=1.9), "again")
            store.finish_attempt(attempt, Status.CORRECT, owner)
            store.retract(first, f"writer {own}")
            store.tags.add([store.begin_run(run)], [f"writer{own}"])
            store.add_finished(
                Finished(
                    run.model_copy(update={"kind": "verify"}),
                    *(of, samples.response(), samples.extraction(), samples.verification(of), Status.CORRECT),
                )
            )


@pytest.mark.ci
def test_sixteen_writers(store: Store) -> None:
    store.close()
    fork = multiprocessing.get_context("fork")  # Python's start and our imports are no part of this
    processes = [fork.Process(target=write, args=(store.place, number)) for number in range(WRITERS)]
    for number in processes:
        number.start()
    for number in processes:
        number.join(100)
    assert [number.exitcode for number in processes] == [0] * WRITERS
    sound(store.place)
    tables = ("attempts", "responses", "verifications", "retractions", "leases")
    with open_store(store.place, create=False) as opened:
        counts = {table: sql.run(opened, f"SELECT COUNT(*) FROM {table}")[0][0] for table in tables}
    made = WRITERS * EACH
    assert counts == {
        "attempts": 2 * made,
        "responses": 2 * made,
        "verifications": 3 * made,
        "retractions": made,
        "leases": 0,
    }


def test_a_transaction_that_fails_leaves_nothing(store: Store) -> None:
    def fail(session: Session) -> None:
        records.ensure_run(session, samples.settings())
        raise ValueError("on purpose")

    with suppress(ValueError):
        store._database.write(fail)
    assert sql.run(store, "SELECT COUNT(*) FROM runs") == [(0,)]

"""Sixteen processes that write at once lose no row."""

from __future__ import annotations

import multiprocessing
from contextlib import suppress

import pytest
from sqlalchemy.orm import Session

from kernelproof.db import records
from kernelproof.db.leases import new_owner
from kernelproof.db.store import Store, open_store
from kernelproof.types import Status
from kernelproof.workspace import DatabasePlace
from tests.db import samples, sql
from tests.db.conftest import BOTH
from tests.db.soundness import sound

STORES = BOTH
WRITERS, EACH = 16, 4


def write(place: DatabasePlace, writer: int) -> None:
    """The work of commands that run side by side: new attempts, judging again, retracting, tags, leases."""
    run, of = samples.settings(f"vendor:{writer % 4}"), samples.problem(writer % 3 + 1)
    with open_store(place, create=False) as store:
        for number in range(EACH):
            attempt, first = samples.judge(store, of, run, speedup=2.0, sample=writer * EACH + number)
            owner = new_owner()
            assert store.leases.take(owner, f"attempt:{attempt}")
            store.record_verification(attempt, samples.verification(of, speedup=1.9), "again")
            store.finish_attempt(attempt, Status.CORRECT, owner)
            store.retract(first, f"writer {writer}")
            store.tags.add([store.begin_run(run)], [f"writer{writer}"])
            store.add_finished(
                run.model_copy(update={"kind": "verify"}),
                *(of, samples.response(), samples.extraction(), samples.verification(of), Status.CORRECT),
            )


@pytest.mark.ci
def test_sixteen_writers(store: Store) -> None:
    store.close()
    fork = multiprocessing.get_context("fork")  # Python's start and our imports are no part of this
    writers = [fork.Process(target=write, args=(store.place, number)) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(100)
    assert [writer.exitcode for writer in writers] == [0] * WRITERS
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
        records.run_row(session, samples.settings())
        raise ValueError("on purpose")

    with suppress(ValueError):
        store._database.write(fail)
    assert sql.run(store, "SELECT COUNT(*) FROM runs") == [(0,)]

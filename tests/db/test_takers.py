"""Several daemons take from one server at once, on machines whose clocks differ."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from kernelproof.db.postgresql import LOCK
from kernelproof.db.queue import LeasedJob
from kernelproof.db.store import Store
from kernelproof.workspace import ServerDatabase
from tests.db.test_queue import BUILDER, MOST, WORKER, item, no_result

STORES = ("postgresql",)
HOUR_S = 3600.0


@contextmanager
def another(store: Store) -> Iterator[psycopg.Connection[Any]]:
    """A transaction of somebody else's, which holds its locks until the block ends."""
    assert isinstance(store.place, ServerDatabase)
    url = store.place.url.replace("postgresql+psycopg", "postgresql")
    with psycopg.connect(url) as connection:
        yield connection
        connection.rollback()


def sent(store: Store, number: int) -> list[str]:
    return [each.id for each in store.service.evaluations.submit("c", [item()] * number, most=MOST)]


def test_takers_at_once_get_each_evaluation_once(store: Store) -> None:
    ids, queue = sent(store, 60), store.service.queue

    def all_that_come(owner: str) -> list[LeasedJob]:
        found = list[LeasedJob]()
        while taken := queue.take(owner, 2, BUILDER):
            found += taken
            for each in taken:
                assert queue.finish_build(each.id, each.token, None)
        return found

    with ThreadPoolExecutor(5) as threads:
        taken = [each for one in threads.map(all_that_come, "abcde") for each in one]
    assert sorted(each.id for each in taken) == sorted(ids) and {each.token for each in taken} == {1}
    assert store.service.evaluations.counts() == {"built": 60}


def test_a_taker_passes_over_what_another_is_taking(store: Store) -> None:
    """A taker that waited would not come back: the other transaction ends after it."""
    first, second, third = sorted(sent(store, 3))  # they were submitted at the same moment
    queue = store.service.queue
    with another(store) as other:
        other.execute("SELECT id FROM evaluations WHERE id = %s FOR UPDATE", (first,))
        assert [each.id for each in queue.take("b", 1, WORKER)] == [second]
        assert [each.id for each in queue.take("c", 5, WORKER)] == [third]
        assert queue.take("d", 5, WORKER) == []
    assert [(each.id, each.token) for each in queue.take("d", 5, WORKER)] == [(first, 1)]


def test_daemons_take_and_renew_while_another_stores_attempts(store: Store) -> None:
    """A process that stores attempts holds the lock of writers; a caller that waited for it would hang."""
    [number] = sent(store, 1)
    queue = store.service.queue
    with another(store) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        [taken] = queue.take("b", 1, BUILDER)
        assert queue.renew("b", {number: taken.token}) == set()
        assert queue.finish_build(number, taken.token, None)
        assert queue.recover() == 0


@pytest.mark.parametrize("ahead_s", [HOUR_S, -HOUR_S])
def test_a_daemon_whose_clock_is_wrong_neither_steals_a_lease_nor_loses_its_own(
    store: Store, monkeypatch: pytest.MonkeyPatch, ahead_s: float
) -> None:
    first, second = sorted(sent(store, 2))
    queue, right = store.service.queue, time.time

    def wrong() -> float:
        return right() + ahead_s

    [punctual] = queue.take("punctual", 1, WORKER)
    monkeypatch.setattr(time, "time", wrong)
    assert queue.recover() == 0, "it stole a lease"
    [astray] = queue.take("astray", 1, WORKER)
    assert (punctual.id, astray.id) == (first, second)
    assert queue.renew("astray", {second: astray.token}) == set()
    monkeypatch.setattr(time, "time", right)
    assert queue.recover() == 0 and queue.renew("astray", {second: astray.token}) == set()
    assert queue.renew("punctual", {first: punctual.token}, lease_s=-1) == set()
    monkeypatch.setattr(time, "time", wrong)
    assert queue.recover() == 1, "a lease that ended is there for every daemon"
    [again] = queue.take("astray", 5, WORKER)
    assert (again.id, again.token) == (first, punctual.token + 1)
    assert no_result(queue, second, astray.token) and no_result(queue, first, again.token)
    assert not no_result(queue, first, punctual.token)

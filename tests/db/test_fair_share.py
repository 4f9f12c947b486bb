"""Daemons that take the same work share it: nobody takes what another one could begin at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelproof.choices import Role
from kernelproof.db.queue import WorkerCapabilities
from kernelproof.db.store import Store
from tests.db.conftest import BOTH
from tests.db.samples import new_store
from tests.db.test_evaluations import BUILDER, MOST, WORKER, item, no_result

STORES = BOTH
PLACES = 34


def sent(store: Store, number: int) -> None:
    store.service.evaluations.submit("c", [item()] * number, most=MOST)


def lives(
    store: Store, owner: str, role: Role = Role.ALL, backend: str = "", waits: str | None = None
) -> None:
    facts: dict[str, str | int | None] = {"role": str(role), "device": "", "places": PLACES, "running": 0}
    backend = backend or ",".join(WORKER.backends)
    store.service.workers.report(owner, **facts, backend=backend, done=0, gpu=None, waits=waits)


def took(store: Store, owner: str, most: int = PLACES, wanted: WorkerCapabilities = WORKER) -> int:
    return len(store.service.queue.take(owner, most, wanted))


def test_two_daemons_have_half_each(store: Store) -> None:
    sent(store, 40)
    lives(store, "a")
    lives(store, "b")
    assert took(store, "a") == 20
    assert took(store, "a") == 0, "the rest is the other one's"
    assert took(store, "b") == 20


def test_one_that_is_alone_takes_as_many_as_it_has_places(store: Store) -> None:
    sent(store, 40)
    lives(store, "a")
    assert took(store, "a") == PLACES


@pytest.mark.few(2)
@pytest.mark.parametrize("other", ["ended", "waiting", "builder", "of another backend"])
def test_one_that_would_not_take_the_same_has_no_part(store: Store, other: str) -> None:
    sent(store, 40)
    lives(
        store,
        "b",
        Role.BUILD if other == "builder" else Role.ALL,
        "another" if other == "of another backend" else "",
        "its GPU is hot" if other == "waiting" else None,
    )
    if other == "ended":
        store.service.workers.end("b")
    assert took(store, "a") == PLACES


def test_builders_share_too(store: Store) -> None:
    sent(store, 9)
    lives(store, "a", Role.BUILD)
    lives(store, "b", Role.BUILD)
    assert [took(store, each, wanted=BUILDER) for each in ("a", "b")] == [5, 4]


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=4), st.integers(1, 20))
def test_all_is_taken_in_the_end_whoever_goes_on(
    tmp_path_factory: pytest.TempPathFactory, empty_database: Path, places: list[int], number: int
) -> None:
    """Also by the last one alone, while the others are listed as alive and take nothing."""
    with new_store(tmp_path_factory.mktemp("shared"), empty_database) as store:
        sent(store, number)
        owners = [f"daemon {index}" for index in range(len(places))]
        for owner in owners:
            lives(store, owner)
        for owner, most in zip(owners[:-1], places, strict=False):
            store.service.queue.take(owner, most, WORKER)
        owner, most, queue = owners[-1], places[-1], store.service.queue
        for other in owners[:-1]:
            queue.release_all(other)
        done = 0
        while taken := queue.take(owner, most, WORKER):
            done += sum(no_result(queue, each.id, each.token) for each in taken)
        assert done == number

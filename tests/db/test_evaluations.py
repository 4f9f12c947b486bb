"""The queue of the evaluation service: fencing, order, and what happens when workers are lost."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelproof.db.evaluation_records import KeyTaken, NoResult, Submitted
from kernelproof.db.evaluations import Evaluations
from kernelproof.db.store import Store, open_store
from kernelproof.types import VerifySettings
from tests.db import samples
from tests.db.conftest import BOTH

STORES = BOTH
MOST = 1000


def item(**more: object) -> Submitted:
    return Submitted(
        problem=samples.problem(1),
        text="text",
        settings=VerifySettings(backend="cpp"),
        request_sha256="0" * 64,
        **more,  # type: ignore[arg-type]
    )


def no_result(queue: Evaluations, number: str, token: int) -> bool:
    return queue.finish(number, token, NoResult("nothing", infrastructure=True))


def test_a_lost_lease_passes_on_and_the_late_verdict_is_refused_and_counted(store: Store) -> None:
    queue = store.service.evaluations
    [sent] = queue.submit("c", [item()], most=MOST)
    [first] = queue.take("a", 5, ["cpp"], lease_s=0.0)
    time.sleep(0.01)
    [second] = queue.take("b", 5, ["cpp"])
    assert (first.id, first.token, second.token) == (sent.id, 1, 2)
    assert queue.renew("a", {first.id: first.token}) == {first.id}
    assert not no_result(queue, first.id, first.token)
    assert no_result(queue, second.id, second.token)
    assert not no_result(queue, second.id, second.token)
    found = queue.get(sent.id)
    assert found is not None and (found.state, found.late_verdicts) == ("failed", 2)
    assert queue.late_verdicts() == 2 and queue.take("c", 5, ["cpp"]) == []


def test_a_key_that_comes_twice_in_a_batch_is_one_evaluation_or_a_mistake(store: Store) -> None:
    queue = store.service.evaluations
    first, second = queue.submit("c", [item(idempotency_key="k")] * 2, most=MOST)
    assert first.id == second.id
    other = replace(item(idempotency_key="new"), request_sha256="1" * 64)
    with pytest.raises(KeyTaken):
        queue.submit("c", [item(idempotency_key="new"), other], most=MOST)
    assert queue.counts() == {"queued": 1}


def test_the_greatest_priority_goes_first_then_the_oldest(store: Store) -> None:
    queue = store.service.evaluations
    sent = queue.submit("c", [item(priority=priority) for priority in (0, 5, 0, 5)], most=MOST)
    taken = [each.id for _ in range(4) for each in queue.take("w", 1, ["cpp"])]
    ids = [each.id for each in sent]
    assert set(taken[:2]) == {ids[1], ids[3]} and set(taken[2:]) == {ids[0], ids[2]}
    assert queue.take("w", 1, ["cpp"]) == []


def test_a_worker_takes_only_what_it_can_run(store: Store) -> None:
    store.service.evaluations.submit("c", [item()], most=MOST)
    assert (
        not store.service.evaluations.has_work(["cuda"])
        and store.service.evaluations.take("w", 1, ["cuda"]) == []
    )
    assert store.service.evaluations.has_work(["cpp"])


def test_a_worker_that_ends_gives_back_what_it_has(store: Store) -> None:
    queue = store.service.evaluations
    queue.submit("c", [item(), item()], most=MOST)
    queue.take("w", 2, ["cpp"])
    assert queue.give_back("w") == 2
    assert [each.token for each in queue.take("v", 2, ["cpp"])] == [2, 2]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), st.integers(1, 3), st.integers(-2, 2)),
        st.tuples(st.just("take"), st.integers(0, 2), st.integers(1, 3)),
        st.tuples(st.just("expire"), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("finish"), st.integers(0, 2), st.integers(0, 5)),
        st.tuples(st.just("cancel"), st.integers(0, 9), st.just(0)),
    ),
    max_size=30,
)


@given(STEPS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_happens_each_evaluation_ends_once(
    empty_database: Path, tmp_path: Path, steps: list[tuple[str, int, int]]
) -> None:
    """Workers take, lose, finish in any order: at most one verdict on each is accepted, and none is lost."""
    path = tmp_path / "any.sqlite"
    shutil.copy(empty_database, path)
    with open_store(path, create=False) as store:
        queue, held, sent = store.service.evaluations, Counter[str](), list[str]()
        leases: dict[int, list[tuple[str, int]]] = {0: [], 1: [], 2: []}
        for step, first, second in steps:
            if step == "submit":
                sent += [e.id for e in queue.submit("c", [item(priority=second)] * first, most=MOST)]
            elif step == "take":
                taken = queue.take(f"w{first}", second, ["cpp"], lease_s=3600)
                leases[first] += [(each.id, each.token) for each in taken]
            elif step == "expire":
                queue.renew(f"w{first}", dict(leases[first]), lease_s=-1)
            elif step == "finish" and leases[first]:
                number, token = leases[first].pop(second % len(leases[first]))
                held[number] += no_result(queue, number, token)
            elif step == "cancel" and sent:
                queue.cancel(sent[first % len(sent)])
        while taken := queue.take("last", 100, ["cpp"], lease_s=3600):
            for each in taken:
                held[each.id] += no_result(queue, each.id, each.token)
        for worker in leases.values():
            for number, token in worker:
                held[number] += no_result(queue, number, token)
        states = [found.state for found in map(queue.get, sent) if found is not None]
        assert len(states) == len(sent) and set(states) <= {"failed", "cancelled"}
        assert all(count <= 1 for count in held.values())
        assert sum(held.values()) == states.count("failed")

"""GPUs in the database: one judge holds each, and those that are set aside are given to none."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from kernelproof.db.gpus import Gpus, LeasedGpu, StoredGpu
from kernelproof.db.queue import MOST_BAD_GPUS, NoResult
from kernelproof.db.store import Store
from tests.db.conftest import BOTH
from tests.db.test_queue import MOST, WORKER, item
from tests.devices.fake_gpus import UUIDS

STORES = BOTH
UUID, OTHER, _ = UUIDS


def take(gpus: Gpus, owner: str, uuid: str = UUID, lease_s: float = 60.0) -> LeasedGpu | StoredGpu:
    return gpus.take(uuid, owner, name="NVIDIA H200", host=f"host of {owner}", lease_s=lease_s)


def held(gpus: Gpus, owner: str, uuid: str = UUID, lease_s: float = 60.0) -> LeasedGpu:
    found = take(gpus, owner, uuid, lease_s)
    assert isinstance(found, LeasedGpu), found
    return found


def test_one_judge_holds_a_gpu_and_the_next_gets_it_when_it_is_free(store: Store) -> None:
    gpus = store.service.gpus
    first = held(gpus, "a")
    refused = take(gpus, "b")
    assert isinstance(refused, StoredGpu)
    assert (refused.state, refused.owner, refused.host) == ("held", "a", "host of a")
    assert held(gpus, "b", OTHER).token == 1
    gpus.give_back(first)
    second = held(gpus, "b")
    assert second.token == first.token + 1 and not second.unproven
    assert not gpus.renew(first) and gpus.renew(second)
    gpus.give_back(first)  # it is no longer the first one's to give
    assert [(gpu.uuid, gpu.state, gpu.owner) for gpu in gpus.all()] == [
        (UUID, "held", "b"),
        (OTHER, "held", "b"),
    ]


def test_a_lease_that_is_not_renewed_passes_on(store: Store) -> None:
    gpus = store.service.gpus
    silent = held(gpus, "a", lease_s=-1.0)
    assert gpus.all()[0].state == "free"
    assert gpus.renew(silent), "late, but nobody took it meanwhile"
    silent = held(gpus, "a", lease_s=-1.0)
    now = held(gpus, "b")
    assert now.token > silent.token and not gpus.renew(silent) and gpus.renew(now)


def test_of_many_who_want_a_gpu_at_once_one_gets_it(store: Store) -> None:
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda n: take(store.service.gpus, f"judge {n}"), range(24)))
    [winner] = [each for each in found if isinstance(each, LeasedGpu)]
    assert {each.owner for each in found} == {winner.owner}


def test_a_gpu_that_is_set_aside_is_given_to_none_until_it_is_put_back(store: Store) -> None:
    gpus = store.service.gpus
    assert not gpus.set_aside(UUID, "nobody has seen it") and not gpus.put_back(UUID)
    lease = held(gpus, "a")
    assert not gpus.put_back(UUID), "it is not set aside"
    assert gpus.set_aside(UUID, "Xid 79") and gpus.set_aside(UUID, "its end")
    assert not gpus.renew(lease)
    refused = take(gpus, "a")
    assert isinstance(refused, StoredGpu) and (refused.state, refused.reason) == ("set aside", "Xid 79")
    assert gpus.put_back(UUID)
    assert held(gpus, "b").unproven
    again = held(gpus, "b")
    assert again.unproven, "the canary has not said anything yet"
    gpus.prove(again)
    assert not held(gpus, "b").unproven


@pytest.mark.parametrize("lost", ["taken", "set aside"])
def test_a_verdict_from_a_gpu_that_was_lost_is_refused_and_counted(store: Store, lost: str) -> None:
    queue, gpus = store.service.queue, store.service.gpus
    [sent] = store.service.evaluations.submit("c", [item()], most=MOST)
    lease = held(gpus, "a", lease_s=-1.0)
    [taken] = queue.take("a", 1, WORKER)
    if lost == "taken":
        held(gpus, "b")
    else:
        gpus.set_aside(UUID, "Xid 79")
    result = NoResult("nothing", infrastructure=True)
    assert not queue.finish(taken.id, taken.token, result, lease)
    found = store.service.evaluations.get(sent.id)
    assert found is not None and (found.state, found.late_verdicts) == ("running", 1)
    assert queue.release_all("a", bad_gpu=True) == 1
    [again] = queue.take("b", 1, WORKER)
    assert queue.finish(again.id, again.token, result, held(gpus, "b", OTHER))


def test_an_evaluation_takes_no_more_than_a_few_gpus_away(store: Store) -> None:
    queue = store.service.queue
    [sent] = store.service.evaluations.submit("c", [item()], most=MOST)
    for _ in range(MOST_BAD_GPUS):
        assert len(queue.take("a", 1, WORKER)) == 1
        assert queue.release_all("a", bad_gpu=True) == 1
    assert queue.take("a", 1, WORKER) == []
    found = store.service.evaluations.get(sent.id)
    assert found is not None and found.state == "failed" and found.infrastructure
    assert f"{MOST_BAD_GPUS} GPUs in a row" in (found.error or "")


def test_one_evaluation_is_handed_back_by_the_worker_that_has_it(store: Store) -> None:
    queue = store.service.queue
    store.service.evaluations.submit("c", [item(), item()], most=MOST)
    first, second = queue.take("a", 2, WORKER)
    queue.release(first.id, first.token)
    queue.release(second.id, second.token - 1)  # of an earlier taking
    [again] = queue.take("b", 2, WORKER)
    assert (again.id, again.token) == (first.id, 2)

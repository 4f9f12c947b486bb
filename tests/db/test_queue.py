"""The queue of the evaluation service: fencing, order, lost workers, and daemons that share the work."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    multiple,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import delete

from kernelproof import backends
from kernelproof.choices import Role
from kernelproof.db.evaluations import MOST_LOSSES, OPEN, KeyConflict, Submitted
from kernelproof.db.models import Evaluation
from kernelproof.db.queue import ALONE_AFTER, JobQueue, LeasedJob, NoResult, WorkerCapabilities
from kernelproof.db.store import Store
from kernelproof.types import VerifySettings
from tests.db import samples
from tests.db.conftest import BOTH
from tests.db.samples import new_store

STORES = BOTH
MOST = 1000
LOSSES = 3


def item(**more: object) -> Submitted:
    return Submitted(
        problem=samples.problem(1),
        text="text",
        settings=VerifySettings(backend="cpp"),
        request_sha256="0" * 64,
        **more,  # type: ignore[arg-type]
    )


WORKER = WorkerCapabilities(Role.ALL, ("cpp",))
BUILDER = WorkerCapabilities(Role.BUILD, ("cpp",))
JUDGE = WorkerCapabilities(Role.JUDGE, ("cpp",))


def no_result(queue: JobQueue, number: str, token: int) -> bool:
    return queue.finish(number, token, NoResult("nothing", infrastructure=True))


def test_a_lost_lease_passes_on_and_the_late_verdict_is_refused_and_counted(store: Store) -> None:
    sent_to, queue = store.service.evaluations, store.service.queue
    [sent] = sent_to.submit("c", [item()], most=MOST)
    [first] = queue.take("a", 5, WORKER, lease_s=-1)
    assert queue.recover() == 1
    [second] = queue.take("b", 5, WORKER)
    assert (first.id, first.token, second.token) == (sent.id, 1, 2)
    assert queue.renew("a", {first.id: first.token}) == {first.id}
    assert not no_result(queue, first.id, first.token)
    assert no_result(queue, second.id, second.token)
    assert not no_result(queue, second.id, second.token)
    found = sent_to.get(sent.id)
    assert found is not None and (found.state, found.late_verdicts) == ("failed", 2)
    assert sent_to.late_verdicts() == 2 and queue.take("c", 5, WORKER) == []


def test_a_judge_gets_what_a_builder_published_and_a_late_build_is_refused_and_counted(store: Store) -> None:
    sent_to, queue = store.service.evaluations, store.service.queue
    [sent] = sent_to.submit("c", [item()], most=MOST)
    assert not queue.has_work(JUDGE) and queue.take("j", 5, JUDGE) == []
    [first] = queue.take("a", 5, BUILDER, lease_s=-1)
    assert sent_to.counts() == {"building": 1} and queue.recover() == 1
    [second] = queue.take("b", 5, BUILDER)
    assert not queue.finish_build(first.id, first.token, "a" * 64)
    assert queue.finish_build(second.id, second.token, "b" * 64)
    assert not queue.finish_build(second.id, second.token, "c" * 64)
    [judged] = queue.take("j", 5, JUDGE)
    assert (judged.id, judged.token, judged.artefact) == (sent.id, 3, "b" * 64)
    assert not queue.finish_build(judged.id, judged.token, "d" * 64) and sent_to.late_builds() == 3
    assert no_result(queue, judged.id, judged.token)


def test_what_a_judge_loses_stays_built(store: Store) -> None:
    sent_to, queue = store.service.evaluations, store.service.queue
    sent_to.submit("c", [item()], most=MOST)
    [taken] = queue.take("b", 1, BUILDER)
    assert queue.finish_build(taken.id, taken.token, "a" * 64)
    for _ in range(3):
        [taken] = queue.take("j", 1, JUDGE)
        assert taken.artefact == "a" * 64
        assert queue.release_all("j") == 1 and sent_to.counts() == {"built": 1}


def test_what_compiles_at_its_first_call_needs_no_builder(store: Store) -> None:
    late = next(name for name in backends.names() if backends.backend(name).first_call is not None)
    one = replace(item(), settings=VerifySettings(backend=late))
    store.service.evaluations.submit("c", [one], most=MOST)
    names = ("cpp", late)
    assert not store.service.queue.has_work(WorkerCapabilities(Role.BUILD, names))
    assert len(store.service.queue.take("j", 1, WorkerCapabilities(Role.JUDGE, names))) == 1


def test_an_evaluation_past_its_deadline_is_not_begun_and_expires(store: Store) -> None:
    sent_to, queue = store.service.evaluations, store.service.queue
    [sent] = sent_to.submit("c", [item(deadline_s=-1)], most=MOST)
    assert queue.take("w", 1, WORKER) == [] and queue.recover() == 1 and queue.recover() == 0
    found = sent_to.get(sent.id)
    assert found is not None and found.state == "expired"


def test_a_key_that_comes_twice_in_a_batch_is_one_evaluation_or_a_mistake(store: Store) -> None:
    queue = store.service.evaluations
    first, second = queue.submit("c", [item(idempotency_key="k")] * 2, most=MOST)
    assert first.id == second.id
    other = replace(item(idempotency_key="new"), request_sha256="1" * 64)
    with pytest.raises(KeyConflict):
        queue.submit("c", [item(idempotency_key="new"), other], most=MOST)
    assert queue.counts() == {"queued": 1}


def test_the_greatest_priority_goes_first_then_the_oldest(store: Store) -> None:
    queue = store.service.queue
    sent = store.service.evaluations.submit(
        "c", [item(priority=number) for number in (0, 5, 0, 5)], most=MOST
    )
    taken = [each.id for _ in range(4) for each in queue.take("w", 1, WORKER)]
    ids = [each.id for each in sent]
    assert set(taken[:2]) == {ids[1], ids[3]} and set(taken[2:]) == {ids[0], ids[2]}
    assert queue.take("w", 1, WORKER) == []


def test_a_worker_takes_only_what_it_can_run(store: Store) -> None:
    store.service.evaluations.submit("c", [item()], most=MOST)
    queue, other = store.service.queue, WorkerCapabilities(Role.ALL, ("cuda",))
    assert not queue.has_work(other) and queue.take("w", 1, other) == []
    assert queue.has_work(WORKER)


def test_what_ends_its_daemons_ends_itself_and_what_they_had_beside_it_does_not(store: Store) -> None:
    sent_to, queue = store.service.evaluations, store.service.queue
    sent = [each.id for each in sent_to.submit("c", [item(), item()], most=MOST)]
    for number in range(ALONE_AFTER):
        taken = queue.take(str(number), 5, WORKER, lease_s=-1)
        assert {each.id for each in taken} == set(sent) and not taken[0].alone
        assert queue.recover() == 2
    [killer] = queue.take("w", 5, WORKER, lease_s=-1)
    assert killer.alone and queue.take("busy", 5, WORKER, busy=True) == []
    for _ in range(MOST_LOSSES - ALONE_AFTER - 1):
        assert queue.recover() == 1
        [again] = queue.take("w", 5, WORKER, lease_s=-1)
        assert again.id == killer.id
    assert queue.recover() == 1 and queue.recover() == 0
    ended = sent_to.get(killer.id)
    assert ended is not None and (ended.state, ended.infrastructure) == ("failed", True)
    assert ended.losses == MOST_LOSSES and f"lost {MOST_LOSSES} times" in (ended.error or "")
    assert not no_result(queue, killer.id, again.token), "it ended before"
    [other] = queue.take("w", 5, WORKER)
    assert other.id != killer.id and no_result(queue, other.id, other.token)


class Queue(RuleBasedStateMachine):
    """Builders, judges and workers take, lose, bring and give back in any order.

    Whatever happens, each evaluation ends once, and only by the newest token. It ends by losses when there
    were LOSSES, and one that was lost ALONE_AFTER times is taken alone.
    """

    stores: Iterator[Store]

    def __init__(self) -> None:
        super().__init__()
        self.store = next(self.stores)
        self.sent_to, self.queue = self.store.service.evaluations, self.store.service.queue
        self.newest, self.ends = dict[str, int](), Counter[str]()
        self.late, self.losses = Counter[str](), Counter[str]()

    sent = Bundle("sent")
    leases = Bundle("leases")

    @rule(target=sent, priority=st.integers(-2, 2))
    def submit(self, priority: int) -> str:
        [one] = self.sent_to.submit("c", [item(priority=priority)], most=MOST, most_losses=LOSSES)
        self.newest[one.id] = 0
        return one.id

    @rule(
        target=leases,
        wanted=st.sampled_from([WORKER, BUILDER, JUDGE]),
        most=st.integers(1, 3),
        busy=st.booleans(),
    )
    def take(self, wanted: WorkerCapabilities, most: int, busy: bool) -> MultipleResults[LeasedJob]:
        taken = self.queue.take(str(wanted.role), most, wanted, lease_s=3600, busy=busy)
        for each in taken:
            assert each.alone == (self.losses[each.id] >= ALONE_AFTER)
            assert not each.alone or (len(taken) == 1 and not busy)
            self.newest[each.id] += 1
            assert each.token == self.newest[each.id], "a token that was given before"
        return multiple(*taken)

    @rule(lease=leases, role=st.sampled_from(Role))
    def lose(self, lease: LeasedJob, role: Role) -> None:
        lost = self.queue.renew(str(role), {lease.id: lease.token}, lease_s=-1) == set()
        assert self.queue.recover() == lost
        self.losses[lease.id] += lost
        self.ends[lease.id] += lost and self.losses[lease.id] == LOSSES
        assert self.ended(lease.id) == self.ends[lease.id]

    @rule(role=st.sampled_from(Role))
    def give_back(self, role: Role) -> None:
        self.queue.release_all(str(role))

    @rule(lease=leases)
    def finish(self, lease: LeasedJob) -> None:
        state = self.state(lease.id)
        accepted = no_result(self.queue, lease.id, lease.token)
        assert accepted == (state == "running" and lease.token == self.newest[lease.id])
        self.ends[lease.id] += accepted
        self.late["verdicts"] += not accepted

    @rule(lease=leases)
    def publish(self, lease: LeasedJob) -> None:
        state = self.state(lease.id)
        accepted = self.queue.finish_build(lease.id, lease.token, "a" * 64)
        assert accepted == (state == "building" and lease.token == self.newest[lease.id])
        self.late["builds"] += not accepted

    @rule(number=sent)
    def cancel(self, number: str) -> None:
        was_open = self.state(number) in OPEN
        self.sent_to.cancel(number)
        self.ends[number] += was_open

    def teardown(self) -> None:
        """All that is left is built and judged."""
        assert self.sent_to.late_verdicts() == self.late["verdicts"]
        assert self.sent_to.late_builds() == self.late["builds"]
        for role in Role:
            self.queue.release_all(str(role))
        while taken := self.queue.take("b", MOST, BUILDER):
            for each in taken:
                assert self.queue.finish_build(each.id, each.token, None)
        while taken := self.queue.take("j", MOST, JUDGE):
            for each in taken:
                self.ends[each.id] += no_result(self.queue, each.id, each.token)
        for number in self.newest:
            found = self.sent_to.get(number)
            assert found is not None and found.losses == self.losses[number]
        assert all(self.ends[number] == 1 for number in self.newest), "lost"

    def ended(self, number: str) -> bool:
        return self.state(number) not in OPEN

    def state(self, number: str) -> str:
        found = self.sent_to.get(number)
        assert found is not None
        return found.state


def empty_stores(store: Store) -> Iterator[Store]:
    """The same store, emptied each time."""
    while True:
        store._database.write(lambda session: session.execute(delete(Evaluation)))
        yield store


def of_store(store: Store, *, examples: int, steps: int) -> None:
    class OfStore(Queue):
        stores = empty_stores(store)

    run_state_machine_as_test(OfStore, settings=settings(max_examples=examples, stateful_step_count=steps))


def test_whatever_happens_each_evaluation_ends_once(store: Store) -> None:
    of_store(store, examples=12 if isinstance(store.place, Path) else 4, steps=20)


@pytest.mark.thorough
def test_the_same_for_long(store: Store) -> None:
    of_store(store, examples=500, steps=50)


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


def test_who_waits_for_an_end_is_woken(store: Store) -> None:
    """Long before its patience ends."""
    evaluations, listens, stop = store.service.evaluations, threading.Event(), threading.Event()
    (added,) = evaluations.submit("c", [item()], most=MOST)

    def wait() -> None:
        listener = evaluations.listener()
        listener.wait(0.01, stop)  # returns once it listens
        listens.set()
        listener.wait(120, stop)
        listener.close()

    with ThreadPoolExecutor(1) as waiting:
        woken = waiting.submit(wait)
        assert listens.wait(30)
        evaluations.cancel(added.id)
        woken.result(60)


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


def test_one_gives_up_what_is_beyond_its_share_when_another_has_none_left(store: Store) -> None:
    queue = store.service.queue
    sent(store, 6)
    lives(store, "a")
    assert took(store, "a") == 6
    assert queue.surplus("a", WORKER) == 0, "it is alone"
    lives(store, "b")
    assert queue.surplus("a", WORKER) == 3
    sent(store, 1)
    assert queue.surplus("a", WORKER) == 0, "one waits, which is the other one's"
    assert took(store, "b") == 1
    assert queue.surplus("a", WORKER) == 2, "it gets more before its last one is over"
    assert queue.surplus("b", WORKER) == 0
    sent(store, 1)
    assert took(store, "b") == 1
    assert queue.surplus("a", WORKER) == 0, "the other one has work"


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

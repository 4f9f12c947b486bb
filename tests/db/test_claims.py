"""A question is asked by one process at a time, and its answer is shared by all attempts that ask it."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import closing

import pytest
from sqlalchemy import select

from kernelproof.db import leases
from kernelproof.db.connection import open_database
from kernelproof.db.leases import is_gone, new_owner
from kernelproof.db.models import Lease
from kernelproof.db.store import Store
from kernelproof.db.views import AttemptLease
from kernelproof.types import Status, VerifySettings
from kernelproof.workspace import address
from tests.db import samples
from tests.db.conftest import BOTH

STORES = BOTH

QUESTION = "a" * 64
TAKE = """
import sys
from kernelproof.db.leases import new_owner
from kernelproof.db.store import open_store
from kernelproof.workspace import database_place
from tests.db import samples
with open_store(database_place(sys.argv[1])) as store:
    run, problem, owner = store.begin_run(samples.settings()), samples.problem(), new_owner()
    store.add_problem(problem)
    for sample in range(int(sys.argv[2])):
        key = samples.key(problem, sample)
        claim = store.lease_attempt(run, key, samples.prompt(), None, str(sample), owner)
        if claim.granted and not claim.state.has_response:
            print(sample, flush=True)
            store.record_response(claim.state.id, samples.response(f"by {owner}"))
    if len(sys.argv) > 3:
        print("ready", flush=True)
        sys.stdin.read()
"""


def claim(
    store: Store, owner: str, sample: int = 0, run: str | None = None, key: str = QUESTION
) -> AttemptLease:
    number = store.begin_run(samples.settings(name=run))
    problem = samples.problem()
    store.add_problem(problem)
    return store.lease_attempt(number, samples.key(problem, sample), samples.prompt(), None, key, owner)


def owners_in(store: Store) -> list[str]:
    with closing(open_database(store.place, create=False)) as database:
        return database.read(lambda session: list(session.scalars(select(Lease.owner))))


def test_the_second_one_waits_until_the_first_one_gives_back(store: Store) -> None:
    first, second = new_owner(), new_owner()
    assert claim(store, first).granted and claim(store, first).granted
    refused = claim(store, second)
    assert not refused.granted
    assert store.leases.held([refused.key], second) == {QUESTION}
    assert store.leases.held([refused.key], first) == set()
    store.leases.give_back(first, refused.key)
    assert store.leases.held([refused.key], second) == set()
    assert claim(store, second).granted


def test_an_owner_frees_only_what_is_its_own(store: Store) -> None:
    first, second = new_owner(), new_owner()
    claim(store, first)
    store.leases.give_back(second, QUESTION)
    store.leases.give_back(second)
    assert not claim(store, second).granted
    store.leases.give_back(first)
    assert claim(store, second).granted


def test_the_same_question_of_another_run_takes_the_stored_answer(store: Store) -> None:
    owner = new_owner()
    asked = claim(store, owner)
    store.record_response(asked.state.id, samples.response("paid for"))
    store.leases.give_back(owner, QUESTION)
    other = claim(store, owner, run="again")
    assert other.reused and other.state.has_response and other.state.id != asked.state.id
    (stored,) = store.load_attempt(other.state.id).responses
    assert stored.reused and stored.response == samples.response("paid for")
    assert not claim(store, owner, run="again").reused
    assert not claim(store, owner, run="third", key="b" * 64).state.has_response
    spent = store.spent([1, 2])
    assert (spent.answers, spent.prompt_tokens, spent.completion_tokens) == (1, 10, 20)


def test_a_silent_owner_of_another_machine_loses_its_lease(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere, here = "another-machine:1:0.0:x", new_owner()
    assert claim(store, elsewhere).granted and not claim(store, here).granted
    later = time.time() + leases.LEASE_S / 2
    monkeypatch.setattr(leases.time, "time", lambda: later)
    store.leases.renew(elsewhere)
    later += leases.LEASE_S - 1
    assert not claim(store, here).granted
    later += 2
    assert claim(store, here).granted


@pytest.mark.few(1)
def test_a_killed_process_loses_its_lease_at_once(store: Store) -> None:
    command = [sys.executable, "-c", TAKE, address(store.place), "1", "stay"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == ["0\n", "ready\n"]
    assert not claim(store, new_owner(), key="0").granted
    process.kill()
    process.communicate()
    assert claim(store, new_owner(), key="0").granted


def test_giving_all_back_leaves_no_lease_of_a_killed_process(store: Store) -> None:
    machine, number, *_ = new_owner().split(":")
    killed, elsewhere, here = f"{machine}:{number}:0.0:x", "another-machine:1:0.0:x", new_owner()
    for owner in (killed, elsewhere, here):
        assert store.leases.take(owner, f"of {owner}")
    store.leases.give_back(here)
    assert owners_in(store) == [elsewhere]


def test_owners_know_who_is_gone() -> None:
    assert not is_gone(new_owner())
    assert not is_gone("another-machine:1:0.0:x") and not is_gone("nonsense")
    machine, number, *_ = new_owner().split(":")
    assert is_gone(f"{machine}:{number}:0.0:x"), "another process had this number"


@pytest.mark.ci
def test_processes_at_once_ask_each_question_once(store: Store) -> None:
    command = [sys.executable, "-c", TAKE, address(store.place), "40"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    asked = [int(line) for process in processes for line in process.communicate()[0].split()]
    assert sorted(asked) == list(range(40))
    states = store.attempts_of(1).values()
    assert len(states) == 40
    assert all(len(store.load_attempt(state.id).responses) == 1 for state in states)


def test_an_error_says_whether_asking_again_can_help(store: Store) -> None:
    begun = claim(store, new_owner()).state
    assert begun.retriable
    store.record_provider_error(begun.id, "too long", retriable=False)
    assert not next(iter(store.attempts_of(1).values())).retriable
    store.record_provider_error(begun.id, "busy", retriable=True)
    assert next(iter(store.attempts_of(1).values())).retriable


def test_an_attempt_judged_at_two_sizes_counts_at_both(store: Store) -> None:
    problem = samples.problem()
    samples.judge(store, problem, samples.settings(), speedup=2.0)
    attempt = store.resolve_attempt("last")
    large = VerifySettings(backend="cpp", size="full")
    judged = samples.verification(problem, speedup=3.0).model_copy(update={"settings": large})
    store.record_verification(attempt, judged, "again")
    found = {result.setting.size: result.best for result in store.scores.leaderboard().problems}
    assert {size: best.speedup for size, best in found.items() if best} == {"small": 2.0, "full": 3.0}
    models = store.scores.leaderboard().models
    assert {model.setting.size: model.correct.part for model in models} == {"small": 1, "full": 1}
    stored = store.load_attempt(attempt)
    assert stored.verdict_for(large) is not None
    assert stored.verdict_for(VerifySettings(backend="cpp", size="other")) is None
    assert stored.status is Status.CORRECT


def test_a_batch_is_alive_as_long_as_its_process(store: Store) -> None:
    run = store.begin_run(samples.settings(name="night"))
    number = store.batches.begin(new_owner(), "night", [run], {"samples": 3})
    (batch,) = store.batches.newest("night")
    assert batch.id == number and batch.alive and batch.config == {"samples": 3}
    store.batches.report(number, {"done": 1}, "done")
    (batch,) = store.batches.newest(str(run))
    assert not batch.alive and batch.ended == "done" and batch.progress == {"done": 1}
    assert store.batches.newest("another") == []
    store.batches.begin("nobody", None, [run], {})
    assert [b.alive for b in store.batches.newest()] == [True, False]

"""`audit`: what leads the leaderboard is verified again, kept, and shown by the leaderboard."""

from __future__ import annotations

import json

import pytest

from kernelproof.db.scores.filters import Filters
from kernelproof.db.store import Store
from kernelproof.runs.reproduction import Leader, drawn, leaders
from kernelproof.types import Interval, Verification
from tests.cli.program import Program
from tests.db import samples


@pytest.mark.ci
def test_a_claim_that_does_not_hold_is_found_and_shown(verified: Program) -> None:
    """The stored result is replaced by one that claims a hundred times the speed."""
    with verified.store() as store:
        _claim_a_hundred(store)
    done = verified.run("runs", "audit", "--sample", "5", code=1)
    first, found, last = done.stdout.splitlines()
    seed = first.removeprefix("auditing 1 ranked result, drawn with --seed ")
    assert seed.isdecimal() and found.startswith("  level1/2 #1: slower: speedup 100.000 then, ")
    assert last == "0 of 1 ranked result held, 1 did not hold"
    board = json.loads(verified.run("leaderboard", "--json").stdout)
    (audit,) = board["audits"]
    assert (audit["ranked"], audit["audited"], audit["held"], audit["refuted"]) == (1, 1, 0, 1)
    shown = verified.run("leaderboard").stdout
    assert f"audited on {audit['last'][:10]}: 0 of 1 ranked result held, 1 did not hold" in shown
    assert [v.kind for v in verified.attempts()[0].verifications] == ["first", "again", "reproduce"]
    assert verified.left_after() == {} and verified.scratch() == []


def _claim_a_hundred(store: Store) -> None:
    stored = store.load_attempt(1).verifications[0]
    measured = stored.verification.measurement
    assert measured is not None
    claim = measured.model_copy(
        update={
            "speedup": 100.0,
            "speedup_interval": Interval(low=99.0, high=101.0),
            "candidate_ms": measured.baseline_ms / 100,
            "resolution": 0.01,
        }
    )
    made = stored.verification.model_copy(update={"measurement": claim})
    store.record_verification(1, Verification.model_validate(made.model_dump()), "again")


@pytest.mark.ci
def test_what_was_measured_elsewhere_is_not_audited_here(verified: Program) -> None:
    with verified.store() as store:
        samples.judge(store, samples.problem(), samples.settings(), speedup=2.0, device="Another CPU")
    done = verified.run("runs", "audit", "--all-ranked", "--device", "Another", code=3)
    assert "what is ranked was measured on Another CPU, and this machine has no such device" in done.stderr


def test_what_makes_no_audit(stored: Program) -> None:
    def told(*words: object) -> str:
        return stored.run("runs", "audit", *words, code=2).stderr

    assert "give --all-ranked, or --sample N" in told()
    assert "give --all-ranked, or --sample N" in told("--all-ranked", "--sample", "3")
    assert "--seed is for --sample" in told("--all-ranked", "--seed", "3")
    assert "no measured result that passes these filters ranks" in told("--all-ranked")


@pytest.mark.ci
def test_a_seed_draws_the_same_again(verified: Program) -> None:
    with verified.store() as store:
        for number in range(1, 30):
            samples.judge(store, samples.problem(number), samples.settings(), speedup=2.0)
        ranked: list[Leader] = leaders(store, Filters())
    assert len(ranked) == 30
    assert drawn(ranked, 5, 7) == drawn(ranked, 5, 7) != drawn(ranked, 5, 8)
    assert drawn(ranked, 99, 7) == ranked

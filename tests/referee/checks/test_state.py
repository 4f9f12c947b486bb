"""Parameters and buffers: what the reference leaves alone stays, what it updates follows, or it is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelproof.problems import read_problem
from kernelproof.types import Check, CheckOutcome, Flag, Status, Verification
from tests.referee.court import Court

pytestmark = pytest.mark.ci

CORPUS = Path(__file__).parents[2] / "corpus"
PROBLEM = CORPUS / "problems" / "batch_norm_train.py"
CANDIDATE = (CORPUS / "honest" / "batch_norm_train_statistics.py").read_text()
MEAN = "norm.running_mean.lerp_(mean, norm.momentum)"
VARIANCE = "norm.running_var.lerp_(variance * (count / (count - 1)), norm.momentum)"
COUNT = "norm.num_batches_tracked += 1"


def judged(court: Court, *updates: str) -> Verification:
    """The verdict on the honest candidate with these updates of the state in place of its own."""
    first, *others = (f"        {update}\n" for update in (MEAN, VARIANCE, COUNT))
    assert all(CANDIDATE.count(line) == 1 for line in (first, *others))
    source = CANDIDATE.replace(first, f"        {'; '.join(updates) or 'pass'}\n")
    for line in others:
        source = source.replace(line, "")
    return court.verdict(source, read_problem(PROBLEM))


def look(verdict: Verification) -> Check:
    """Its look at what the reference updates."""
    return next(check for check in verdict.checks if check.name == "state_updated")


def test_statistics_that_follow_are_seen(court: Court) -> None:
    verdict = judged(court, MEAN, VARIANCE, COUNT)
    check = look(verdict)
    assert (verdict.status, verdict.flags) == (Status.CORRECT, ())
    assert check.outcome is CheckOutcome.PASS
    assert check.figures == {"compared": 3, "others": 0, "not_there": 0}


@pytest.mark.parametrize(
    ("updates", "name", "others"),
    [
        ((), "norm.num_batches_tracked", 3),
        ((MEAN, COUNT), "norm.running_var", 1),
        ((MEAN, VARIANCE), "norm.num_batches_tracked", 1),
        ((MEAN, VARIANCE.replace("count / (count - 1)", "1.1"), COUNT), "norm.running_var", 1),
    ],
    ids=["none", "no variance", "no count", "another variance"],
)
def test_what_does_not_follow_is_a_flag(
    court: Court, updates: tuple[str, ...], name: str, others: int
) -> None:
    verdict = judged(court, *updates)
    check = look(verdict)
    assert verdict.status is Status.CORRECT
    assert verdict.flags == (Flag.STATE_NOT_UPDATED,)
    assert check.figures["others"] == others
    assert check.seen.startswith(name)
    assert check.outcome is CheckOutcome.FAIL


def test_buffers_that_are_not_there_are_said(court: Court) -> None:
    verdict = judged(court, "norm._buffers.pop('running_mean', None)", VARIANCE, COUNT)
    check = look(verdict)
    assert verdict.flags == (Flag.STATE_NOT_UPDATED,)
    assert (check.figures["compared"], check.figures["not_there"]) == (2, 1)
    assert check.seen == "norm.running_mean is not there"


def test_what_the_reference_leaves_alone_must_stay(court: Court) -> None:
    verdict = judged(court, "norm.bias += 0.0001")
    assert verdict.status in (Status.MUTATED_INPUT, Status.WRONG_OUTPUT)

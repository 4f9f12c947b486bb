"""Parameters and buffers: what the reference leaves alone stays, what it updates follows, or it is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.nouns import Check, CheckOutcome, Flag, Status, Verification, VerifySettings
from pipeline.problems import read_problem
from pipeline.referee.request import VerifyRequest
from tests.referee.court import Court

PROBLEM = Path(__file__).parents[1] / "corpus" / "problems" / "batch_norm_train.py"
CANDIDATE = """
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        norm, count = self.norm, x.numel() // x.shape[1]
        mean = x.mean((0, 2, 3))
        centred = x - mean[:, None, None]
        variance = centred.square().mean((0, 2, 3))
        @update@
        scale = norm.weight * torch.rsqrt(variance + norm.eps)
        return centred * scale[:, None, None] + norm.bias[:, None, None]
"""
MEAN = "norm.running_mean.lerp_(mean, norm.momentum)"
VARIANCE = "norm.running_var.lerp_(variance * (count / (count - 1)), norm.momentum)"
COUNT = "norm.num_batches_tracked += 1"


def judged(court: Court, *updates: str) -> tuple[Verification, Check]:
    """The verdict, and its look at the state."""
    settings = VerifySettings(backend="cpp", trials=1, own_kernel=False, measure=False, threads=1)
    source = CANDIDATE.replace("@update@", "; ".join(updates) or "pass")
    request = VerifyRequest(problem=read_problem(PROBLEM), source=source, settings=settings, device="cpu")
    verdict = court.judge(request)
    return verdict, next(check for check in verdict.checks if check.name == "state_updated")


def test_statistics_that_follow_are_seen(court: Court) -> None:
    verdict, check = judged(court, MEAN, VARIANCE, COUNT)
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
    verdict, check = judged(court, *updates)
    assert verdict.status is Status.CORRECT
    assert verdict.flags == (Flag.STATE_NOT_UPDATED,)
    assert check.figures["others"] == others
    assert check.seen.startswith(name)
    assert check.outcome is CheckOutcome.FAIL


def test_buffers_that_are_not_there_are_said(court: Court) -> None:
    verdict, check = judged(court, "norm._buffers.pop('running_mean', None)", VARIANCE, COUNT)
    assert verdict.flags == (Flag.STATE_NOT_UPDATED,)
    assert (check.figures["compared"], check.figures["not_there"]) == (2, 1)
    assert check.seen == "norm.running_mean is not there"


def test_what_the_reference_leaves_alone_must_stay(court: Court) -> None:
    settings = VerifySettings(backend="cpp", trials=1, own_kernel=False, measure=False, threads=1)
    source = CANDIDATE.replace("@update@", "norm.bias += 0.0001")
    verdict = court.judge(
        VerifyRequest(problem=read_problem(PROBLEM), source=source, settings=settings, device="cpu")
    )
    assert verdict.status in (Status.MUTATED_INPUT, Status.WRONG_OUTPUT)

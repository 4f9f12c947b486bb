"""A trainer is told that the machine was busy, so that noise may have lowered a score."""

from __future__ import annotations

from unittest import mock

from kernelproof.client import Client, Evaluated
from kernelproof.service.schemas import _times
from kernelproof.trainers import rewards
from kernelproof.trainers.openrlhf import reward_func
from kernelproof.trainers.verl import compute_score
from tests.db import samples


def evaluated(disturbed: int, kept: int) -> Evaluated:
    """A correct program, of whose rounds so many were thrown away, and so many kept."""
    verification = samples.verification(samples.problem(), speedup=2.0)
    assert verification.measurement is not None
    rounds = {"disturbed": ("other programs took a core",) * disturbed, "order": ("BC",) * kept}
    measured = verification.measurement.model_copy(update=rounds)
    times = _times(verification.model_copy(update={"measurement": measured}))
    result = {"status": "correct", "score": 1.98, "feedback": "", "reason": "", **times}
    return Evaluated.of(
        {"id": "1", "state": "done", "error": None, "infrastructure": False, "result": result}
    )


def test_busy_is_a_quarter_of_the_rounds() -> None:
    assert evaluated(4, 12).busy == "4 of 16 rounds were disturbed and left out: other programs took a core"
    assert evaluated(4, 13).busy == "" and evaluated(0, 0).busy == ""


def test_rewards_say_so() -> None:
    client = mock.create_autospec(Client, instance=True)
    client.evaluate_many.return_value = [evaluated(4, 12)]
    with (
        mock.patch("kernelproof.trainers.verl.client", lambda: client),
        mock.patch("kernelproof.trainers.openrlhf.client", lambda: client),
    ):
        assert compute_score("set", "text", "level1/1")["busy_machine"] == 1.0
        assert reward_func(["ptext"], ["p"], ["level1/1"])["extra_logs"]["busy_machine"] == [1.0]
    assert rewards.reward_of(evaluated(4, 12)) > 1

"""A trainer is told that the machine was busy, so that noise may have lowered a score."""

from __future__ import annotations

from types import SimpleNamespace
from unittest import mock

import anyio

from kernelproof.client import AsyncClient, Client, Evaluated
from kernelproof.service.nemo_gym import response_of
from kernelproof.service.schemas import _times
from kernelproof.trainers import rewards, trl, verifiers
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
    left_out = "4 of 16 rounds were disturbed and left out; the last: other programs took a core"
    assert evaluated(4, 12).busy == left_out
    assert evaluated(4, 13).busy == "" and evaluated(0, 0).busy == ""


def test_rewards_say_so() -> None:
    client = mock.create_autospec(Client, instance=True)
    client.evaluate_many.return_value = [evaluated(4, 12)]
    logged: dict[str, list[bool]] = {}
    with mock.patch("kernelproof.trainers.rewards.client", lambda: client):
        assert compute_score("set", "text", "level1/1")["busy_machine"] == 1.0
        assert reward_func(["ptext"], ["p"], ["level1/1"])["extra_logs"]["busy_machine"] == [1.0]
        [reward] = trl.kernel_reward(["text"], ["level1/1"], log_extra=logged.__setitem__)
        assert trl.kernel_reward(["text"], ["level1/1"]) == [reward], "TRL before log_extra"
    assert reward == rewards.reward_of(evaluated(4, 12)) > 1 and logged == {"busy_machine": [True]}


def test_verifiers_is_told_so() -> None:
    """A trace gets a metric, as its `record_metric` of version 0.4 has it; a rubric's state gets a key."""
    client = mock.create_autospec(AsyncClient)
    client.return_value.__aenter__.return_value.evaluate_many.return_value = [evaluated(4, 12)]
    metrics: dict[str, float] = {}
    state: dict[str, bool] = {}
    trace = SimpleNamespace(last_reply="text", record_metric=metrics.__setitem__)
    with mock.patch("kernelproof.trainers.verifiers.AsyncClient", client):
        assert anyio.run(verifiers.task_reward, SimpleNamespace(problem="level1/1"), trace) > 1
        assert anyio.run(verifiers.kernel_reward, "text", "level1/1", state) > 1
    assert metrics == state == {"busy_machine": True}


def test_nemo_gym_is_told_so() -> None:
    assert response_of(evaluated(4, 12).raw)["busy_machine"] is True
    assert response_of(evaluated(0, 12).raw)["busy_machine"] is False

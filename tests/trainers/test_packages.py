"""Each trainer's real package asks for rewards by its own code, from the real service.

scripts/trainer_packages.sh installs the packages, and runs these tests.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli import material
from tests.service.conftest import NO_PROGRAM
from tests.trainers.conftest import Ask

RIGHT, WRONG = material.right(), material.wrong()
package = pytest.mark.package
pytestmark = pytest.mark.timeout(900)


@package("trl")
def test_trl(ask: Ask) -> None:
    found = ask("trl_rewards", answers=[RIGHT, WRONG, "never " + NO_PROGRAM], problem="relu")
    assert found["rewards"] == [1.0, 0.0, 0.0]
    assert found["trained"] == {"step": 1, "reward": 0.0} and found["busy"] == [False] * 3


@package("verl")
def test_verl(ask: Ask) -> None:
    found = ask("verl_rewards", answers=[RIGHT, WRONG], problem="relu")
    assert [each["reward_score"] for each in found["rewards"]] == [1.0, 0.0]
    assert [each["reward_extra_info"]["judged"] for each in found["rewards"]] == [1.0, 1.0]


@package("openrlhf")
@pytest.mark.parametrize("way", ["file", "route"])
def test_openrlhf(ask: Ask, way: str) -> None:
    found = ask("openrlhf_rewards", answers=[RIGHT, WRONG], problem="relu", way=way)
    assert [_alone(each["reward"]) for each in found["rewards"]] == [1.0, 0.0]
    assert [_alone(each["extra_logs"]["correct"]) for each in found["rewards"]] == [1.0, 0.0]
    assert found["unknown"] is None, "a problem that the service has not has no reward"


def _alone(value: Any) -> float:
    """OpenRLHF makes a tensor of a number as of a list of one."""
    return float(value[0] if isinstance(value, list) else value)


@package("verifiers")
def test_verifiers(ask: Ask) -> None:
    found = ask("verifiers_rewards", answers=[RIGHT, WRONG], problem="relu")
    assert found["rewards"] == [1.0, 0.0]
    assert "no problem 'realu'" in found["unknown"] and found["busy"] == [0.0, 0.0]


@package("verifiers-rubric")
def test_verifiers_with_a_rubric(ask: Ask) -> None:
    found = ask("verifiers_rubric_rewards", answers=[RIGHT, WRONG], problem="relu")
    assert found["rewards"] == [1.0, 0.0] and found["busy"] == [False, False]


@package("skyrl-gym")
def test_skyrl(ask: Ask) -> None:
    first, second = ask("skyrl_rewards", answers=[WRONG, RIGHT], problem="relu")["steps"]
    assert (first["reward"], first["done"], second["reward"], second["done"]) == (0.0, False, 1.0, True)
    assert "What was seen" in first["observations"][0]["content"] and second["observations"] == []


def _openenv(ask: Ask) -> None:
    found = ask("openenv_rewards", answers=[WRONG, RIGHT], problem="relu")
    first, second = found["steps"]
    assert (first["reward"], first["done"], second["reward"], second["done"]) == (0.0, False, 1.0, True)
    assert "What was seen" in first["observation"]["feedback"]
    assert found["state"]["step_count"] == 2


@package("openenv")
def test_openenv(ask: Ask) -> None:
    _openenv(ask)


@package("openenv-core")
def test_openenv_core(ask: Ask) -> None:
    _openenv(ask)


@package("nemo-gym")
def test_nemo_gym(ask: Ask) -> None:
    found = ask("nemo_gym_rewards", answers=[RIGHT, WRONG], problem="relu")
    assert found["rewards"] == [1.0, 0.0] and found["metrics"]["agent_metrics"]["mean/reward"] == 0.5
    assert found["busy"] == [False, False]
    assert found["own"] == {name: found["metrics"]["agent_metrics"][name] for name in found["own"]}


@package("kernelgym")
def test_kernelgym(ask: Ask) -> None:
    """KernelGYM's own client, unchanged. It always asks for Triton, which a CPU interprets."""
    found = ask(
        "kernelgym_rewards", answers=[TRITON, "class ModelNew: pass", NO_PROGRAM], problem=material.RELU
    )
    right, wrong, refused = found["rewards"]
    assert (right["status"], right["compiled"], right["correctness"]) == ("completed", True, True)
    assert (wrong["status"], wrong["compiled"], wrong["correctness"]) == ("completed", False, False)
    assert right["reward"] > wrong["reward"]
    assert "Client validation failed" in refused["error"], "its client refuses this by itself"


TRITON = """import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def relu(x, y, count, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < count
    tl.store(y + places, tl.maximum(tl.load(x + places, mask=inside), 0.0), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
"""

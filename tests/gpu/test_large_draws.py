"""Large weights on a real GPU: every process of a verification draws the same, and quickly."""

from __future__ import annotations

import time

import pytest
import torch

from kernelproof.hashing import sha256_text
from kernelproof.types import Problem, Status, VerifySettings
from kernelproof.verifier.contestant.random_draws import large_draws
from kernelproof.verifier.engine.engine import Engine

pytestmark = pytest.mark.gpu

SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4096, 4096), nn.Linear(4096, 1024)
        self.scale = nn.Parameter(torch.randn(4096, 4096))

    def forward(self, x):
        return self.second(torch.relu(self.first(x) @ self.scale))


def get_inputs():
    return [torch.randn(64, 4096)]


def get_init_inputs():
    return []
"""


def test_candidate_and_reference_draw_the_same(engine: Engine) -> None:
    problem = Problem(
        id="large",
        suite="kernelproof",
        name="large",
        source=SOURCE,
        sha256=sha256_text(SOURCE),
        sizes={"full": {}},
    )
    settings = VerifySettings(backend="cuda", size="full", own_kernel=False, measure=False)
    verdict = engine.verify(f"{SOURCE}\n\nModelNew = Model\n", problem, settings)
    assert verdict.status is Status.CORRECT, verdict.reason
    (weights,) = (check for check in verdict.checks if check.name == "weights")
    assert weights.figures["equal_before"] == weights.figures["matched"] == 5, weights.seen


def test_it_is_quicker_than_a_processor() -> None:
    device, seconds = torch.device("cuda"), []
    torch.zeros(1, device=device)
    for where in (device, torch.device("cpu")):
        torch.manual_seed(1)
        began = time.monotonic()
        with large_draws(where):
            torch.nn.Linear(16384, 8192)
        seconds.append(time.monotonic() - began)
    print(f"on the GPU {seconds[0]:.2f} s, by the processor {seconds[1]:.2f} s")
    assert seconds[0] < seconds[1]

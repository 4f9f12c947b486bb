"""A candidate that is far slower is spared the single variants, until its times say that it is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from kernelproof.types import Status, Verification, VerifySettings
from kernelproof.types.verification import VerifyRequest
from kernelproof.verifier.build import learn_toolchain
from kernelproof.verifier.referee.checks import trials
from kernelproof.verifier.referee.inputs.variants import VARIANTS
from kernelproof.verifier.referee.session import Tools, WarmState
from kernelproof.verifier.referee.verdict import verify
from tests.referee.doubles import share_the_generator
from tests.referee.problems import text, written
from tests.workers.test_client import refuse

pytestmark = pytest.mark.ci  # they idle
PROBLEM = text("return torch.relu(x @ x)", "torch.randn(200, 200)")
CANDIDATE = """
import time

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls <= {slow}:
            time.sleep(0.1)
        if {wrong} and bool((x < 0).all()):
            return torch.zeros_like(x)
        return torch.relu(x @ x)
"""


@pytest.fixture
def tools(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tools]:
    share_the_generator(monkeypatch)
    monkeypatch.setitem(trials.DEAR_SECONDS, "cpu", 0.02)
    threads = torch.get_num_threads()
    yield Tools(refuse, lambda stage: None, cache, learn_toolchain(cache), WarmState())
    torch.set_num_threads(threads)


def judged(tools: Tools, folder: Path, slow: int, *, wrong: bool, measure: bool = True) -> Verification:
    settings = VerifySettings(
        backend="cpp", own_kernel=False, measure_seconds=0.3, threads=1, measure=measure, rigor="quick"
    )
    source = CANDIDATE.format(slow=slow, wrong=wrong)
    request = VerifyRequest(problem=written(folder, PROBLEM), source=source, settings=settings, device="cpu")
    return verify(request, tools)


def tried(verdict: Verification) -> set[str]:
    """The variants that it was asked on."""
    names = {check.name.removeprefix("values: ") for check in verdict.checks}
    return names & {"mixed rows", *(variant.name for variant in VARIANTS)}


def test_who_is_far_slower_is_tried_on_all_variants_in_the_rows_of_one_draw(
    tools: Tools, tmp_path: Path
) -> None:
    verdict = judged(tools, tmp_path, 10_000, wrong=False)
    assert verdict.status is Status.CORRECT, verdict.reason
    assert tried(verdict) == {"mixed rows"}


def test_without_times_nothing_is_put_off(tools: Tools, tmp_path: Path) -> None:
    verdict = judged(tools, tmp_path, 10_000, wrong=True, measure=False)
    assert (verdict.status, verdict.reason.startswith("values: negative")) == (Status.WRONG_OUTPUT, True)


def test_who_idles_in_its_trials_is_tried_when_it_was_timed(tools: Tools, tmp_path: Path) -> None:
    """Wrong where all inputs are negative, which rows of one draw do not show."""
    verdict = judged(tools, tmp_path, 14, wrong=True)
    assert verdict.status is Status.WRONG_OUTPUT
    assert verdict.reason.startswith("values: negative"), verdict.reason
    assert "timing" in verdict.stage_seconds
    right = judged(tools, tmp_path, 14, wrong=False)
    assert right.status is Status.CORRECT, right.reason
    assert len(tried(right)) > 6
    names = [check.name for check in right.checks]
    assert len(names) == len(set(names))

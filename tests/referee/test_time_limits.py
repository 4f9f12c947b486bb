"""How long a call may take by what the source names, and whose fault it is that one takes longer."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from kernelproof.types import Status
from kernelproof.verifier.devices import gpu_health
from kernelproof.verifier.referee import verdict as verdicts
from kernelproof.verifier.referee.session import WarmState
from kernelproof.verifier.referee.stages import BUILT_SECONDS, LEAST_SECONDS, least_seconds
from kernelproof.verifier.status_rules import Ended
from tests.referee.corpus import members
from tests.referee.court import Court
from tests.referee.problems import text, written

PLAIN = "ext = load_inline('x', cuda_sources=['__global__ void warp() {}'], functions=['f'])"


@pytest.mark.parametrize(
    "busy",
    [
        "@triton.jit",
        "torch.compile(self.layer)",
        "torch.jit.script(f)",
        "nvrtc.compile()",
        "torch.backends.cudnn.benchmark = True",
        "def autotune(): ...",
        "best = self.tuning[shape]",
    ],
)
def test_who_compiles_or_tunes_in_the_first_call_has_longer(busy: str) -> None:
    assert least_seconds("cuda", PLAIN) == BUILT_SECONDS < LEAST_SECONDS["cuda"]
    assert least_seconds("cuda", PLAIN + "\n" + busy) == LEAST_SECONDS["cuda"]
    assert least_seconds("cpu", PLAIN) == LEAST_SECONDS["cpu"]


def test_the_corpus_candidates_that_tune_themselves_are_known() -> None:
    tuned = [member for device in ("cpu", "cuda") for member in members(device) if "tuned" in member.name]
    assert tuned
    assert all(least_seconds("cuda", member.source) == LEAST_SECONDS["cuda"] for member in tuned)


LATE = "it did not answer within its time limit of 3 s"


@pytest.mark.parametrize(
    ("status", "seconds", "end"),
    [
        (Status.TIMEOUT, 0.3, Status.INFRASTRUCTURE_ERROR),
        (Status.TIMEOUT, 0.0, Status.TIMEOUT),
        (Status.CRASH, 0.3, Status.CRASH),
    ],
)
def test_a_timeout_counts_where_the_canary_was_quick(
    status: Status, seconds: float, end: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdicts, "STOOD_STILL_S", 0.2)
    monkeypatch.setattr(gpu_health, "confirm", lambda *_, **__: time.sleep(seconds))
    verdict = verdicts.confirmed(Ended(status, LATE), "cuda:0", "GPU-0", WarmState())
    assert verdict.status is end and LATE in verdict.reason
    assert ("the machine stood still" in verdict.reason) == (end is Status.INFRASTRUCTURE_ERROR)


SLOW = """
import time
from torch import nn

class ModelNew(nn.Module):
    loaded, calls = time.time(), 0

    def forward(self, x):
        type(self).calls += 1
        if WAITS:
            time.sleep(60)
        return x.relu()
"""
AGAIN = "its first call was late, so it was made again in a fresh process"


def test_a_first_call_that_waited_for_the_machine_is_made_again_in_a_fresh_process(court: Court) -> None:
    """All that is read before some moment takes long, as from a disk that stands still."""
    limit = 8
    waits = f"self.loaded < {time.time() + limit}"
    verdict = court.verdict(SLOW.replace("WAITS", waits), "level1/1", call_seconds=limit)
    assert verdict.status is Status.CORRECT
    assert [check.seen.endswith(AGAIN) for check in verdict.checks if check.name == "weights"] == [True]


@pytest.mark.parametrize(("waits", "again"), [("True", True), ("self.calls > 1", False)])
def test_a_call_that_is_late_in_a_fresh_process_too_or_was_not_the_first_is_a_timeout(
    court: Court, waits: str, again: bool
) -> None:
    verdict = court.verdict(SLOW.replace("WAITS", waits), "level1/1", call_seconds=3)
    assert verdict.status is Status.TIMEOUT and LATE in verdict.reason
    assert [check.seen.endswith(AGAIN) for check in verdict.checks if check.name == "weights"] == [again]


FOLDED = """
import time
import torch
from torch import nn

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(9, 9)
        with torch.no_grad():
            self.linear.weight.mul_(3.0), self.linear.bias.mul_(3.0)
        self.own, self.made = float(self.linear.weight.sum()), time.time()

    def forward(self, x):
        if float(self.linear.weight.sum()) == self.own and WAITS:
            time.sleep(60)
        return self.linear(x)
"""


@pytest.mark.parametrize(("late", "limit", "status"), [(12, 12, Status.CORRECT), (600, 3, Status.TIMEOUT)])
def test_a_first_call_with_weights_that_are_kept_is_made_again_too(
    court: Court, tmp_path: Path, late: int, limit: int, status: Status
) -> None:
    problem = text("return self.linear(x) * 3", "torch.randn(33, 9)", "self.linear = nn.Linear(9, 9)")
    source = FOLDED.replace("WAITS", f"self.made < {time.time() + late}")
    verdict = court.verdict(source, written(tmp_path, problem), call_seconds=limit)
    assert verdict.status is status, verdict.reason
    assert [AGAIN in check.seen for check in verdict.checks if check.name == "weights"] == [True]

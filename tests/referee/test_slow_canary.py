"""A call that timed out while the whole machine stood still is nobody's fault but the machine's."""

from __future__ import annotations

import time

import pytest

from kernelproof.types import Status
from kernelproof.verifier.devices import gpu_health
from kernelproof.verifier.referee import judge
from kernelproof.verifier.referee.ledger import Ended
from kernelproof.verifier.referee.warm_state import WarmState

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
    monkeypatch.setattr(judge, "STOOD_STILL_S", 0.2)
    monkeypatch.setattr(gpu_health, "confirm", lambda *_, **__: time.sleep(seconds))
    verdict = judge.confirmed(Ended(status, LATE), "cuda:0", "GPU-0", WarmState())
    assert verdict.status is end and LATE in verdict.reason
    assert ("the machine stood still" in verdict.reason) == (end is Status.INFRASTRUCTURE_ERROR)

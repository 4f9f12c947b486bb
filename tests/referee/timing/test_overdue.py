"""Rounds that are not over in time: whose fault that is.

A GPU goes on with the kernels of a process that is held, and nothing of ours gets on beside enough of them.
On a CPU a stand-in keeps our work waiting. tests/corpus/faults/cuda_kernels_left_in_contexts.py is the real
thing.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelproof.problems import read_problem
from kernelproof.types import Pace, Status, Verification, VerifySettings
from kernelproof.types.verification import VerifyRequest
from kernelproof.verifier.build import learn_toolchain
from kernelproof.verifier.referee import sides, stages
from kernelproof.verifier.referee.session import Tools, WarmState
from kernelproof.verifier.referee.timing import measuring
from kernelproof.verifier.referee.timing.timed_outputs import TimedOutputs
from kernelproof.verifier.referee.verdict import verify
from kernelproof.verifier.workers.client import Contestant
from tests.referee.doubles import apart, serve_sabotaged, start_doubles

HERE = Path(__file__).parents[1] / "sabotaged"
HONEST = (HERE / "honest.py").read_text()
SLOW = HONEST.replace("import torch\n", "import time\n\nimport torch\n", 1).replace(
    "        y =", "        time.sleep(0.1)\n        y ="
)


class Device:
    """Stands for a GPU on which candidates leave kernels when they reply to a timed block."""

    def __init__(self) -> None:
        self.leaving = 0
        """So many of the processes leave endless kernels there, the first ones."""
        self.slow = 0.0
        """Seconds that our work waits in any case, once a candidate was timed."""
        self.candidates = list[Contestant]()
        self._timed = list[Contestant]()

    def replied(self, side: Contestant, message: dict[str, Any]) -> None:
        if message.get("class") == "ModelNew":
            self.candidates.append(side)
        if message["op"] == "time" and side in self.candidates:
            self._timed.append(side)

    def settled(self, _: object) -> None:
        """Returns when work of ours that was queued is done."""
        for side in self._timed:
            while side in self.candidates[: self.leaving] and side.outcome is None:
                time.sleep(0.005)
        time.sleep(self.slow if self._timed else 0.0)


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    start_doubles(monkeypatch, serve)
    found, ask = Device(), Contestant.ask

    def asked(side: Contestant, message: dict[str, Any], **how: Any) -> dict[str, Any]:
        reply = ask(side, message, **how)
        found.replied(side, message)
        return reply

    monkeypatch.setattr(Contestant, "ask", asked)
    monkeypatch.setattr(sides, "settled", found.settled)
    with apart(tmp_path, monkeypatch):
        yield found


def serve(sock: socket.socket) -> None:
    serve_sabotaged(sock, lambda _, answer: [answer])


@pytest.fixture
def judged(cache: Path) -> Any:
    tools = Tools(lambda _: None, lambda _: None, cache, learn_toolchain(cache), WarmState())  # type: ignore[arg-type, return-value]

    def judge(source: str) -> Verification:
        chosen = VerifySettings.model_validate(
            {"backend": "cpp", "own_kernel": False, "trials": 1, "threads": 1}
            | {"measure_seconds": 0.1, "target_half_width": 0.5, "rigor": "quick"}
        )
        request = VerifyRequest(
            problem=read_problem(HERE / "problem.py"), source=source, settings=chosen, device="cpu"
        )
        return verify(request, tools)

    return judge


def within(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """From now on the rounds of a pair may take so long."""
    monkeypatch.setattr(measuring.Measuring, "pair_seconds", seconds)


def test_who_leaves_the_device_busy_in_both_of_two_processes_is_to_blame(
    device: Device, judged: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    within(monkeypatch, 1.5)
    device.leaving = 9
    verdict = judged(HONEST)
    assert verdict.status is Status.TIMEOUT
    assert verdict.reason.startswith("the rounds of its timing were not over in 1.5 s, and without it ")
    assert verdict.reason.endswith(", twice")
    assert len(device.candidates) == 2


@pytest.mark.ci
def test_once_may_be_the_machine(device: Device, judged: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    within(monkeypatch, 6.0)
    device.leaving = 1
    verdict = judged(HONEST)
    assert verdict.status is Status.CORRECT, verdict.reason
    assert len(device.candidates) == 2
    (quiet,) = (check for check in verdict.checks if check.name == "undisturbed")
    assert "not over in 6 s" in quiet.seen and "begun again" in quiet.seen


def test_a_machine_that_is_as_slow_without_it_is_to_blame(
    device: Device, judged: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    within(monkeypatch, 1.5)
    device.slow = 0.3
    verdict = judged(HONEST)
    assert verdict.status is Status.INFRASTRUCTURE_ERROR
    assert verdict.reason.startswith("the machine stood still: the rounds of its timing were not over in")
    assert len(device.candidates) == 1


def test_comparing_that_takes_long_is_nobodys_fault(
    device: Device, judged: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A result that is barely right needs the truth in float64, which a GPU may compute slowly."""
    within(monkeypatch, 3.0)
    wrong = TimedOutputs.wrong

    def slow(*arguments: Any) -> Any:
        time.sleep(4.0)
        return wrong(*arguments)

    monkeypatch.setattr(TimedOutputs, "wrong", slow)
    assert judged(HONEST).status is Status.INFRASTRUCTURE_ERROR
    assert len(device.candidates) == 1


@pytest.mark.ci
def test_a_slow_kernel_is_in_time(device: Device, judged: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its calls may take a second each here, and take a tenth of one."""
    monkeypatch.setitem(stages.LEAST_SECONDS, "cpu", 1.0)
    verdict = judged(SLOW)
    assert verdict.status is Status.CORRECT, verdict.reason
    assert verdict.measurement is not None and verdict.measurement.pace is Pace.SLOWER
    assert len(device.candidates) == 1

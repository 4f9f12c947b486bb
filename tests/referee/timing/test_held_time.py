"""What a candidate does while it is held counts as time of its block, and convicts it where it is work; and
attacks on what the referee keeps from it, with less kept than usual."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from kernelproof.problems import read_problem
from kernelproof.types import Problem, Status, Verification, VerifySettings
from kernelproof.types.verification import VerifyRequest
from kernelproof.verifier.build import learn_toolchain
from kernelproof.verifier.referee.session import Tools, WarmState
from kernelproof.verifier.referee.verdict import verify
from kernelproof.verifier.sandbox import pausing, probe, seccomp
from kernelproof.verifier.workers.client import Contestant
from tests.referee.doubles import share_the_generator
from tests.referee.problems import as_candidate, text, written
from tests.workers.test_client import refuse

pytestmark = pytest.mark.ci

CORPUS = Path(__file__).parents[2] / "corpus"
PROBLEM = text("return torch.relu(x @ x)", "torch.randn(300, 300)")


@pytest.fixture
def tools(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tools]:
    """A judge in this process, so that what it uses can be changed."""
    share_the_generator(monkeypatch)
    threads = torch.get_num_threads()
    yield Tools(refuse, lambda stage: None, cache, learn_toolchain(cache), WarmState())
    torch.set_num_threads(threads)


def verdict(problem: Problem, source: str, tools: Tools) -> Verification:
    settings = VerifySettings(backend="cpp", trials=1, own_kernel=False, measure_seconds=0.5, threads=1)
    request = VerifyRequest(problem=problem, source=source, settings=settings, device="cpu")
    return verify(request, tools)


def test_processor_time_of_the_hold_counts_and_convicts_nobody(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same code as the baseline's. If a second of each block had been done before, it would be slower."""
    look = Contestant.look
    monkeypatch.setattr(Contestant, "look", lambda contestant: look(contestant) + 1000.0)
    judged = verdict(written(tmp_path, PROBLEM), as_candidate(PROBLEM), tools)
    assert judged.status is Status.CORRECT, judged.reason
    assert judged.measurement is not None
    assert judged.measurement.speedup_interval.high < 0.6


def test_who_is_continued_by_the_kernels_timer_gains_nothing(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no filter refuses the timer and no control group holds, the check is the last line of defence.

    Each answer takes it 20 ms, so 0.5 is far more than it may claim. On a loaded machine it cannot be stopped
    between two signals, or the timer's signal is lost where it waits for a core.
    """
    probe()  # which would say that this filter confines nothing
    allow = struct.pack("<HBBI", 0x06, 0, 0, 0x7FFF0000)
    monkeypatch.setattr(seccomp, "program", lambda **_: allow)
    monkeypatch.setattr(pausing, "_own_group", lambda: None)
    source = (CORPUS / "harmless" / "continued_by_a_timer.py").read_text()
    source = source.replace("EVERY_NS = 1, 5_000_000", "EVERY_NS = 1, 40_000_000")
    judged = verdict(read_problem(CORPUS / "problems" / "relu_of_uniform.py"), source, tools)
    if judged.status is Status.CORRECT:
        assert judged.measurement is not None and judged.measurement.speedup < 0.5
    elif judged.status is Status.CRASH:
        assert "could not be held still" in judged.reason
    else:
        assert judged.status is Status.CHEATING and judged.reason.startswith("held_still")


ZEROES_UNWATCHED = (
    as_candidate(PROBLEM)
    + """

def run(forward, slots, device, places, **more):
    with torch.no_grad():
        before = [slot.arguments[0].clone() for slot in slots]
        values = [forward(x) for x in before]
        for slot, x, value, (place,) in zip(slots, before, values, places(), strict=True):
            place.copy_(value)
            if torch.equal(slot.arguments[0], x):  # the watched slot's were destroyed
                slot.arguments[0].zero_()
        return [0.5] * len(slots)


loop.run_block = run
"""
)


def test_inputs_of_slots_that_are_not_watched_are_compared_too(tools: Tools, tmp_path: Path) -> None:
    """They could be made easy for itself."""
    source = "from kernelproof.verifier.contestant import loop\n" + ZEROES_UNWATCHED
    judged = verdict(written(tmp_path, PROBLEM), source, tools)
    assert (judged.status, judged.reason.partition(":")[0]) == (Status.MUTATED_INPUT, "timed_inputs"), (
        judged.reason
    )


def test_an_honest_program_changes_no_inputs_that_are_not_numbers(tools: Tools, tmp_path: Path) -> None:
    problem = text("return torch.nan_to_num(torch.relu(x))", "torch.where(torch.rand(99, 9) < 0.1, nan, 1.0)")
    problem = problem.replace("import torch\n", "import torch\n\nnan = float('nan')\n", 1)
    judged = verdict(written(tmp_path, problem), as_candidate(problem), tools)
    assert judged.status is Status.CORRECT, judged.reason

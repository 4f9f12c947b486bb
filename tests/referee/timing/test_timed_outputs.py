"""Outputs of timed calls: what differs from the native result only as the truth allows is not refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kernelproof.types import VerifySettings
from kernelproof.verifier.contestant.loop import OutputMeta
from kernelproof.verifier.referee.correctness.oracle import Oracle
from kernelproof.verifier.referee.correctness.tolerance import NORM_FLOOR
from kernelproof.verifier.referee.inputs import problem
from kernelproof.verifier.referee.timing.timed_outputs import Subject, TimedOutputs
from kernelproof.verifier.workers.shared_memory import SharedSlot, SlotSide
from tests.referee.problems import CPU, oracle_of, text

MOSTLY_ZERO = text("return torch.relu(torch.tanh(x) - 0.999)", "torch.randn(1 << 20)")
"""One element in 14,000 is above zero, by 4e-4 or so; float32 has a rounding of 6e-8 there before the
difference is taken: more than a thousandth of the root mean square of all elements."""


@pytest.fixture
def oracle(tmp_path: Path) -> Oracle:
    return oracle_of(tmp_path, MOSTLY_ZERO)


def rounded_otherwise(x: torch.Tensor) -> torch.Tensor:
    """The same as the reference, but that every hyperbolic tangent is one rounding higher or lower."""
    near = torch.tanh(x)
    up = torch.rand(x.shape, generator=torch.Generator().manual_seed(9)) < 0.5
    other = torch.where(up, near + 2.0**-24, near - 2.0**-24)
    return torch.relu(other - 0.999)


class Slot(SharedSlot):
    """One whose arguments are the tensors themselves."""

    def values(self) -> list[torch.Tensor]:
        return [*self.baseline.views]


def timed(oracle: Oracle, trials: int = 1) -> TimedOutputs:
    """After so many trials."""
    error = 0.0
    for number in range(trials):
        expected = oracle.expected("drawn", oracle.loaded.draw(number, CPU), 0)
        error = max(error, expected.sticks[0].reference_relative_norm)
    settings = VerifySettings(backend="cpp", trials=1, own_kernel=False)
    return TimedOutputs(Subject(oracle, [], settings, CPU, lambda: 0, [error]))


def beside(oracle: Oracle, change: str = "") -> tuple[Slot, TimedOutputs]:
    [x] = oracle.loaded.draw(77, CPU)
    native, mine = torch.relu(torch.tanh(x) - 0.999), rounded_otherwise(x)
    outputs = timed(oracle)
    if change == "one element":
        mine[int(mine.argmax())] *= 1.5
    elif change == "one of the zeros":
        mine[int((mine == 0).nonzero()[5])] = 1e-4
    elif change == "all a little":
        mine *= 1.01
    elif change == "inputs":
        x = torch.full_like(x, 5.0)
        mine = torch.relu(torch.tanh(x) - 0.999)
    spec = {"arena": "inputs", "offset": 0}
    return Slot((spec,), (x,), (spec,), (mine,), SlotSide((spec,), (x,), (spec,), (native,))), outputs


def test_a_rounding_of_outputs_that_are_mostly_zero_is_right(oracle: Oracle) -> None:
    slot, outputs = beside(oracle)
    assert outputs.wrong_beside(slot, slot, 0) is None
    assert outputs.wrong(slot, slot.values(), 0) is None


def test_the_truth_is_asked_where_the_trials_say_too_little(oracle: Oracle) -> None:
    """Without a single trial nothing is known of how far off one element of the native result may be."""
    slot, _ = beside(oracle)
    oracle = Oracle(oracle.loaded, oracle.model, OutputMeta(None, []), CPU, "fp32")
    assert timed(oracle, trials=0).wrong_beside(slot, slot, 0) is None


def test_without_memory_for_the_truth_the_trials_say_enough(
    oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot, outputs = beside(oracle)

    def full(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("no memory")

    monkeypatch.setattr(problem.LoadedProblem, "run", full)
    assert outputs.wrong_beside(slot, slot, 0) is None


@pytest.mark.parametrize("change", ["one element", "one of the zeros", "all a little", "inputs"])
def test_all_else_stays_wrong(oracle: Oracle, change: str) -> None:
    slot, outputs = beside(oracle, change)
    found = outputs.wrong_beside(slot, slot, 0)
    assert found is not None
    assert found.wrong > 0


PRODUCT = text("return x @ x.T", "torch.randn(64, 300)")


@pytest.mark.parametrize(("off", "noted", "wrong"), [(0.5, 0, False), (1.5, 1, False), (2.5, 0, True)])
def test_a_float32_output_beyond_a_trials_bound_is_right_when_timed_and_noted(
    tmp_path: Path, off: float, noted: int, wrong: bool
) -> None:
    """The secret slot allows twice a trial's bound in float32: strictly compared, an honest program near the
    bound would have as many more trials as there are rounds. So what that would refuse is counted only."""
    oracle = oracle_of(tmp_path, PRODUCT)
    outputs = timed(oracle)
    [x] = oracle.loaded.draw(77, CPU)
    native = x @ x.T
    error = torch.randn(native.shape, generator=torch.Generator().manual_seed(1))
    mine = native + off * NORM_FLOOR[torch.float32] * native.norm() / error.norm() * error
    spec = {"arena": "inputs", "offset": 0}
    slot = Slot((spec,), (x,), (spec,), (mine,), SlotSide((spec,), (x,), (spec,), (native,)))
    assert (outputs.wrong(slot, [x], 0) is not None) is wrong
    assert outputs.beyond_trial == noted


@pytest.mark.parametrize(("off", "wrong"), [(0.0, False), (2e-6, False), (2.5e-5, True)])
def test_a_bound_that_fits_the_problem_holds_for_timed_outputs_too(
    tmp_path: Path, off: float, wrong: bool
) -> None:
    """A candidate that is exact in its trials never asks for that bound there."""
    problem = text(
        "return (0.15 * x @ self.w).softmax(1)",
        "torch.rand(99, 64)",
        "self.w = nn.Parameter(torch.randn(64, 96) / 8)",
    )
    oracle = oracle_of(tmp_path, problem)
    [first], [x] = oracle.loaded.draw(76, CPU), oracle.loaded.draw(77, CPU)
    expected = oracle.expected("drawn", [first], 0)
    assert oracle.judge(expected, expected.native.outputs).precision == []
    with torch.no_grad():
        native = oracle.model(x)
    error = torch.randn(native.shape, generator=torch.Generator().manual_seed(1))
    mine = native + off * native.norm() / error.norm() * error
    spec = {"arena": "inputs", "offset": 0}
    slot = Slot((spec,), (x,), (spec,), (mine,), SlotSide((spec,), (x,), (spec,), (native,)))
    outputs = timed(oracle)
    assert (outputs.wrong_beside(slot, slot, 0) is not None) is wrong
    assert (outputs.wrong(slot, [x], 0) is not None) is wrong

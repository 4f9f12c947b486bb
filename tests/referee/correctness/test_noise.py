"""Outputs that are rounding noise: whatever honest arithmetic leaves of them is right, and nothing larger."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from kernelproof.problems import read_problem
from kernelproof.types import CheckOutcome, Status, VerifySettings
from kernelproof.verifier.referee.correctness.oracle import Expected, Oracle
from kernelproof.verifier.referee.inputs.variants import VARIANTS
from kernelproof.verifier.referee.timing.timed_outputs import Subject, TimedOutputs
from kernelproof.verifier.workers.shared_memory import SlotSide
from tests.referee import problems
from tests.referee.corpus import CORPUS
from tests.referee.court import Court
from tests.referee.problems import CPU, as_candidate, text
from tests.referee.timing.test_timed_outputs import Slot

INIT = 'self.register_buffer("calls", torch.zeros(())); self.table = nn.Embedding(9, 99)'
GROUPS, WIDTH = 3, 1024
MEAN_OF_NORM = f"return nn.functional.group_norm(x, {GROUPS}).mean((1, 2))"
VOLUMES = f"torch.rand(8, 6, {WIDTH})"


def oracle_of(folder: Path, body: str, inputs: str = VOLUMES) -> Oracle:
    return problems.oracle_of(folder, text(body, inputs, INIT))


def drawn(oracle: Oracle, seed: int = 3) -> Expected:
    return oracle.expected("drawn", oracle.loaded.draw(seed, CPU), 0)


def in_turn(rows: torch.Tensor) -> torch.Tensor:
    """The sum of each row, one float32 term after another."""
    return torch.from_numpy(np.add.accumulate(rows.numpy(), axis=-1, dtype=np.float32)[..., -1].copy())


def by_hand(x: torch.Tensor, *, passes: int) -> torch.Tensor:
    """What a kernel with one thread for each output gives, with its variance in one pass or in two."""
    rows = x.reshape(len(x) * GROUPS, -1)
    mean = in_turn(rows) / rows.shape[1]
    off = rows - mean[:, None]
    squares = in_turn(off * off if passes == 2 else rows * rows) / rows.shape[1]
    variance = squares if passes == 2 else (squares - mean * mean).clamp(min=0)
    normed = (off * (variance + 1e-5).rsqrt()[:, None]).reshape(len(x), -1)
    return in_turn(normed) / normed.shape[1]


def by_torch(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.group_norm(x, GROUPS).mean((1, 2))


RIGHT: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "exact": lambda x: by_torch(x.double()).float(),
    "zeros": lambda x: torch.zeros(len(x)),
    "one pass": lambda x: by_hand(x, passes=1),
    "two passes": lambda x: by_hand(x, passes=2),
    "channels last": lambda x: by_torch(x.flip(2)),
    "half the batch at a time": lambda x: torch.cat([by_torch(part) for part in x.chunk(3)]),
}
WRONG: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a constant": lambda x: torch.full((len(x),), 0.1),
    "a thousand times the noise": lambda x: 1000 * by_hand(x, passes=1).abs().max().expand(len(x)),
    "without the mean": lambda x: (x / x.std(dim=(1, 2), keepdim=True)).mean((1, 2)),
    "the first group": lambda x: torch.nn.functional.group_norm(x, GROUPS)[:, :1].mean((1, 2)),
    "one wrong row": lambda x: by_torch(x).index_fill(0, torch.tensor([5]), 1e-3),
    "one not a number": lambda x: by_torch(x).index_fill(0, torch.tensor([5]), float("nan")),
}


@pytest.mark.parametrize("name", RIGHT)
def test_whatever_honest_arithmetic_leaves_is_right(tmp_path: Path, name: str) -> None:
    oracle = oracle_of(tmp_path, MEAN_OF_NORM)
    for seed in range(3):
        expected = drawn(oracle, seed)
        assert expected.sticks[0].noise is not None
        comparison = oracle.compare(expected, [RIGHT[name](expected.arguments[0])])
        assert comparison.wrong is None, comparison.wrong
    for variant in VARIANTS:
        arguments = variant.apply(oracle.loaded.draw(1, CPU), 2)
        assert arguments is not None
        expected = oracle.expected(variant.name, arguments, 0, forgiving=True)
        comparison = oracle.compare(expected, [RIGHT[name](arguments[0])])
        assert comparison.wrong is None, (variant.name, comparison.wrong)


@pytest.mark.parametrize("name", WRONG)
def test_what_is_larger_than_noise_is_wrong(tmp_path: Path, name: str) -> None:
    oracle = oracle_of(tmp_path, MEAN_OF_NORM)
    expected = drawn(oracle)
    wrong = oracle.compare(expected, [WRONG[name](expected.arguments[0])]).wrong
    assert wrong is not None
    assert wrong.allowed_abs is None or wrong.allowed_abs < 1e-4


@pytest.mark.parametrize("rows", [1, 8])
def test_a_lucky_native_result_makes_no_narrow_bound(tmp_path: Path, rows: int) -> None:
    """A single output may come out near zero by chance, from torch and from nobody else."""
    oracle = oracle_of(tmp_path, MEAN_OF_NORM, f"torch.rand({rows}, 6, {WIDTH})")
    for seed in range(20):
        expected = drawn(oracle, seed)
        assert oracle.compare(expected, [by_torch(expected.arguments[0].flip(2))]).wrong is None


NOISE = {
    "sums of a softmax less one": ("return x.softmax(-1).sum(-1) - 1", "torch.randn(50, 31)"),
    "a difference": ("return x / 3 * 3 - x", "1 + torch.rand(50, 31)"),
    "one number": ("return (x - x.mean()).mean()", "torch.rand(50, 31)"),
    "float64": (MEAN_OF_NORM, f"torch.rand(8, 6, {WIDTH}, dtype=torch.float64)"),
    "bfloat16": (MEAN_OF_NORM, f"torch.rand(8, 6, {WIDTH}).bfloat16()"),
    "complex": ("y = torch.fft.fft(x); return y / y.abs() - torch.polar(torch.ones_like(x), y.angle())",
                "torch.randn(50, 31)"),
    "tokens": (MEAN_OF_NORM.replace("(x", "(self.table(x)"), "torch.randint(0, 9, (8, 6))"),
}  # fmt: skip
NO_NOISE = {
    "equal scores": ("return x.softmax(-1)", "torch.ones(50, 31)"),
    "small numbers": ("return x.softmax(-1)", "torch.randn(5, 65536)"),
    "zeros": ("return torch.relu(x)", "-1 - torch.rand(50, 31)"),
    "float64": ("return x.cos().sum(-1)", "torch.randn(50, 31, dtype=torch.float64)"),
    "integers": ("return (x * 10).long()", "torch.randn(50, 31)"),
    "a state": ("self.calls += 1; return x * self.calls", "torch.randn(50, 31)"),
    "a draw": ("return x * (torch.rand(x.shape, dtype=x.dtype) > 0.5)", "torch.randn(50, 31)"),
    "a branch": ("return x * (2 if x.dtype == torch.float64 else 1)", "torch.randn(50, 31)"),
    "a branch beside noise": (
        "y = x.softmax(-1).sum(-1) - 1; return y + 1e-6 * (x.dtype == torch.float64)", "torch.randn(50, 31)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NOISE)
def test_noise_is_known_as_such(tmp_path: Path, name: str) -> None:
    oracle = oracle_of(tmp_path, *NOISE[name])
    expected = drawn(oracle)
    assert expected.sticks[0].noise is not None
    [native] = expected.native.outputs
    for right in (torch.zeros_like(native), -native, native):
        assert oracle.compare(expected, [right]).wrong is None
    assert oracle.compare(expected, [native + 0.1]).wrong is not None


@pytest.mark.parametrize("name", NO_NOISE)
def test_nothing_else_is_taken_for_it(tmp_path: Path, name: str) -> None:
    oracle = oracle_of(tmp_path, *NO_NOISE[name])
    expected = drawn(oracle)
    assert expected.sticks[0].noise is None
    [native] = expected.native.outputs
    assert oracle.compare(expected, [native]).wrong is None
    assert name == "zeros" or oracle.compare(expected, [torch.zeros_like(native)]).wrong is not None


STEEP = 2.0**24


def test_rows_that_rounding_does_not_decide_are_judged_as_ever(tmp_path: Path) -> None:
    """In the first thirty rows two scores are equal but for a rounding or two."""
    body = f"y = x[:, :1] / 3 * 3; return torch.softmax({STEEP} * torch.cat([y, x[:, 1:]], 1), -1)"
    inputs = "(lambda x: torch.where(torch.arange(100)[:, None] < 30, x[:, :1], x))(1 + torch.rand(100, 2))"
    oracle = oracle_of(tmp_path, body, inputs)
    expected = drawn(oracle)
    noise = expected.sticks[0].noise
    assert noise is not None
    [native] = expected.native.outputs
    rows = (noise.view(100, 2) > 0).any(1)
    assert int(rows[:30].sum()) > 20
    assert not rows[30:].any()
    turned = torch.where(rows[:, None], native.flip(1), native)
    assert oracle.compare(expected, [turned]).wrong is None
    for row in range(30, 40):
        mine = native.clone()
        mine[row, 0] += 0.01
        assert oracle.compare(expected, [mine]).wrong is not None


def test_noise_in_a_part_of_an_output_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    body = MEAN_OF_NORM.replace("return ", "y = ") + "; return torch.stack([y, x.amax((1, 2))])"
    oracle = oracle_of(tmp_path, body)
    expected = drawn(oracle)
    [native] = expected.native.outputs
    mine = native.clone()
    mine[0] = by_hand(expected.arguments[0], passes=1)
    assert oracle.compare(expected, [mine]).wrong is None
    mine[1, 4] *= 1.01
    assert oracle.compare(expected, [mine]).wrong is not None


@pytest.mark.parametrize("trials", [1, 3])
def test_timed_outputs_are_held_to_the_same(tmp_path: Path, trials: int) -> None:
    oracle = oracle_of(tmp_path, MEAN_OF_NORM)
    for number in range(trials):
        drawn(oracle, number)
    settings = VerifySettings(backend="cpp", trials=1, own_kernel=False)
    outputs = TimedOutputs(Subject(oracle, [], settings, CPU, lambda: 0, [0.0]))
    [x] = oracle.loaded.draw(77, CPU)
    spec = {"arena": "inputs", "offset": 0}

    def slot(mine: torch.Tensor) -> Slot:
        return Slot((spec,), (x,), (spec,), (mine,), SlotSide((spec,), (x,), (spec,), (by_torch(x),)))

    for right in RIGHT.values():
        place = slot(right(x))
        assert outputs.wrong_beside(place, place, 0) is None
        assert outputs.wrong(place, [x], 0) is None
        assert outputs.wrong_decoy(place, VARIANTS[0], [x], 0) is None
    for wrong in WRONG.values():
        place = slot(wrong(x))
        assert outputs.wrong_beside(place, place, 0) is not None
        assert outputs.wrong(place, [x], 0) is not None


CANDIDATE = as_candidate(
    text(
        "return RESULT",
        "",
        "self.linear = nn.Linear(65, 129); self.norm = nn.LayerNorm(129, elementwise_affine=False)",
    )
)
IN_TURN = "(self.norm(self.linear(x)).cumsum(-1)[:, -1] / 129).contiguous()"


@pytest.mark.ci
@pytest.mark.parametrize(
    ("result", "status"),
    [
        (IN_TURN, Status.CORRECT),
        ("torch.zeros(33)", Status.CORRECT),
        ("self.linear(x).mean(-1)", Status.WRONG_OUTPUT),
    ],
)
def test_a_whole_verification(court: Court, result: str, status: Status) -> None:
    """Zeros are the exact result."""
    problem = read_problem(CORPUS.parent / "problems" / "bad" / "rounding_noise.py")
    verdict = court.verdict(CANDIDATE.replace("RESULT", result), problem, trials=2)
    assert verdict.status is status, verdict.reason
    if status is Status.CORRECT:
        judged = [c for c in verdict.checks if c.name.startswith("values: ")]
        assert all(c.outcome is not CheckOutcome.FAIL for c in judged)
        assert "rounding noise in 33 of 33 elements" in judged[0].seen

"""The bound that fits a problem: it tells coarse operands from honest float32 where the floor does not.

Each problem has programs that compute with coarse operands and are right by the dtype's floor, and honest
ones that err more than the reference does: sums in tensor cores, Winograd's convolution, fast exponentials.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from kernelproof.types import Flag, Status
from kernelproof.verifier.referee.correctness import precision
from kernelproof.verifier.referee.correctness.oracle import Comparison, Oracle
from kernelproof.verifier.referee.correctness.plain_arithmetic import eleven_bits
from kernelproof.verifier.referee.correctness.precision import sixteen_bits
from tests.referee.court import Court
from tests.referee.problems import CPU, as_candidate, oracle_of, text, written

Candidate = Callable[[Any, torch.Tensor], torch.Tensor]
Product = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

PROBLEMS: dict[str, tuple[str, str, str]] = {
    "embedding": ("self.w = nn.Embedding(300, 64)", "self.w(x)", "torch.randint(0, 300, (500,))"),
    "bag": ("self.w = nn.EmbeddingBag(300, 64)", "self.w(x)", "torch.randint(0, 300, (100, 9))"),
    "masked softmax": (
        "pass",
        "(4 * x).masked_fill(x.abs() < 0.5, -torch.inf).softmax(1)",
        "torch.randn(200, 300)",
    ),
    "softmax of product": (
        "self.w = nn.Parameter(torch.randn(64, 96) / 8)",
        "(0.15 * x @ self.w).softmax(1)",
        "torch.rand(200, 64)",
    ),
    "small scale": (
        "self.w = nn.Parameter(torch.randn(256, 256) / 16)",
        "x + 0.01 * (x @ self.w)",
        "torch.randn(64, 256)",
    ),
    "product": ("self.w = nn.Parameter(torch.randn(2048, 48))", "x @ self.w", "torch.randn(48, 2048)"),
    "short product": ("self.w = nn.Parameter(torch.randn(128, 48))", "x @ self.w", "torch.randn(48, 128)"),
    "convolution": ("self.w = nn.Conv2d(32, 8, 3, bias=False)", "self.w(x)", "torch.randn(1, 32, 26, 26)"),
    "tanh": ("pass", "torch.tanh(0.02 * x)", "torch.randn(100, 100)"),
    "tanh of inputs": ("pass", "torch.tanh(x)", "torch.rand(300, 300)"),
    "tanh of a convolution": (
        "self.w = nn.Conv2d(8, 16, 3)",
        "F.max_pool2d(2 * torch.tanh(self.w(x)), 4)",
        "torch.rand(2, 8, 34, 34)",
    ),
    "mish of a convolution": (
        "self.w = nn.Conv2d(8, 16, 3)",
        "F.mish(self.w(x) - 0.7)",
        "torch.rand(2, 8, 34, 34)",
    ),
    "squared error": ("pass", "((x - 0.5) ** 2).mean()", "torch.rand(100, 100)"),
    "whole numbers": (
        "self.w = nn.Parameter(torch.randint(-9, 9, (99, 30)).float())",
        "x @ self.w",
        "torch.randint(-9, 9, (50, 99)).float()",
    ),
    "complex sum": ("pass", "torch.view_as_real(torch.view_as_complex(x).sum(1))", "torch.rand(16, 6000, 2)"),
    "rotary": (
        "self.w = nn.Buffer(torch.polar(torch.ones(64, 32), torch.rand(64, 32)))",
        "torch.view_as_real(torch.view_as_complex(x.unflatten(2, (32, 2))) * self.w).flatten(2)",
        "torch.randn(9, 64, 64)",
    ),
    "rotary of angles": (
        "self.w = nn.Buffer(torch.randn(64, 64) / 80)",
        "x + torch.view_as_real(torch.view_as_complex((x @ self.w).unflatten(2, (32, 2)))"
        " * torch.polar(torch.ones(64, 32), torch.arange(2048.0).view(64, 32) / 900)).flatten(2)",
        "torch.randn(9, 64, 64)",
    ),
    "rows added up in float16": (
        "pass",
        "torch.zeros(20, 50, dtype=torch.float16).index_put((torch.arange(400) % 20,), x, accumulate=True)",
        "torch.rand(400, 50, dtype=torch.float16)",
    ),
    "bfloat16 table": (
        "self.w = nn.Embedding(300, 64, dtype=torch.bfloat16)",
        "self.w(x)",
        "torch.randint(0, 300, (500,))",
    ),
    "float16 relu": ("pass", "x.relu()", "torch.randn(99, 50, dtype=torch.float16)"),
    "complex flip": ("pass", "torch.view_as_real(x.flip(0))", "torch.randn(99, 50, dtype=torch.complex64)"),
}


def masked_softmax(rounding: Callable[[torch.Tensor], torch.Tensor]) -> Candidate:
    def candidate(model: Any, x: torch.Tensor) -> torch.Tensor:
        scores = (4 * x).masked_fill(x.abs() < 0.5, -torch.inf)
        powers = rounding(torch.exp2((scores - scores.amax(1, keepdim=True)) * 1.4426950408889634))
        return powers / powers.sum(1, keepdim=True)

    return candidate


def centred(model: Any, x: torch.Tensor) -> torch.Tensor:
    """The mean of the inputs apart: what is left has smaller errors in TF32."""
    scores: torch.Tensor = eleven_bits(x - 0.5) @ eleven_bits(model.w) + 0.5 * model.w.sum(0)
    return (0.15 * scores).softmax(1)


def truncated(exact: torch.Tensor) -> torch.Tensor:
    """float64 values as float32, cut towards zero, as tensor cores do."""
    near = exact.float()
    return torch.where(near.double().abs() > exact.abs(), torch.nextafter(near, near * 0), near)


def in_parts(parts: list[Callable[[torch.Tensor], torch.Tensor]], terms: list[tuple[int, int]]) -> Product:
    """A product of operands in parts, smallest first, eight terms a step, each step truncated."""

    def split(x: torch.Tensor) -> list[torch.Tensor]:
        found = []
        for rounding in parts:
            found.append(rounding(x))
            x = x - found[-1]
        return found

    def product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        ours, theirs = split(left), split(right)
        total = torch.zeros(left.shape[0], right.shape[1])
        for start in range(0, left.shape[1], 8):
            part = slice(start, start + 8)
            for i, j in terms:
                total = truncated(total.double() + ours[i][:, part].double() @ theirs[j][part].double())
        return total

    return product


def turned(x: torch.Tensor) -> torch.Tensor:
    """Pairs turned by their angles."""
    angles = torch.arange(2048.0).view(64, 32) / 900
    even, odd = x[..., ::2], x[..., 1::2]
    cos, sin = angles.cos(), angles.sin()
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


def bfloat16(x: torch.Tensor) -> torch.Tensor:
    return x.bfloat16().float()


three_tf32 = in_parts([eleven_bits] * 2, [(1, 0), (0, 1), (0, 0)])
six_bfloat16 = in_parts([bfloat16] * 3, [(1, 1), (0, 2), (2, 0), (0, 1), (1, 0), (0, 0)])


def winograd(model: Any, x: torch.Tensor) -> torch.Tensor:
    """F(4x4, 3x3) at the points 0, 1, -1, 2 and -2."""
    into = [[4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0]]
    into += [[0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1]]
    taps = [[1 / 4, 0, 0], [-1 / 6] * 3, [-1 / 6, 1 / 6, -1 / 6]]
    taps += [[1 / 24, 1 / 12, 1 / 6], [1 / 24, -1 / 12, 1 / 6], [0, 0, 1]]
    back = [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]]
    b, g, a = (torch.tensor(rows, dtype=torch.float32) for rows in (into, taps, back))
    tiles = b @ x.unfold(2, 6, 4).unfold(3, 6, 4) @ b.T
    y = a @ torch.einsum("ocij,nchwij->nohwij", g @ model.w.weight @ g.T, tiles) @ a.T
    return y.permute(0, 1, 2, 4, 3, 5).reshape(x.shape[0], -1, x.shape[2] - 2, x.shape[3] - 2)


def fast_tanh(x: torch.Tensor) -> torch.Tensor:
    """Off by 4.3e-6 in norm for numbers of [0, 1), as tanhf with `--use_fast_math` on an H200 was."""
    noise = torch.rand(x.shape, generator=torch.Generator().manual_seed(1))
    return torch.tanh(x) + (2 * noise - 1) * 3.5e-6


def eight_bits(table: torch.Tensor) -> torch.Tensor:
    step = table.float().abs().amax(1, keepdim=True) / 127
    return ((table / step).round() * step).to(table.dtype)


COARSE: dict[tuple[str, str], Candidate] = {
    ("embedding", "16-bit table"): lambda m, x: sixteen_bits(m.w.weight)[x],
    ("bfloat16 table", "8-bit table"): lambda m, x: eight_bits(m.w.weight)[x],
    ("bag", "16-bit table"): lambda m, x: sixteen_bits(m.w.weight)[x].mean(1),
    ("masked softmax", "half exponentials"): masked_softmax(
        lambda powers: torch.where(powers < 1 / 32, powers.half().float(), powers)
    ),
    ("softmax of product", "TF32 of centred inputs"): centred,
    ("small scale", "TF32"): lambda m, x: x + 0.01 * (eleven_bits(x) @ eleven_bits(m.w)),
    ("short product", "16-bit weights"): lambda m, x: x @ sixteen_bits(m.w.T).T,
    ("rotary of angles", "TF32"): lambda m, x: x + turned(eleven_bits(x) @ eleven_bits(m.w)),
}
HONEST: dict[tuple[str, str], Candidate] = {
    ("embedding", "by a gather"): lambda m, x: m.w.weight.gather(0, x[:, None].expand(-1, 64)),
    ("bfloat16 table", "by way of float32"): lambda m, x: m.w.weight.float()[x].bfloat16(),
    ("bag", "in turn"): lambda m, x: sum(m.w.weight[x[:, k]] for k in range(9)) / 9,
    ("masked softmax", "exp2"): masked_softmax(lambda powers: powers),
    ("softmax of product", "three TF32"): lambda m, x: (0.15 * three_tf32(x, m.w)).softmax(1),
    ("small scale", "three TF32"): lambda m, x: x + 0.01 * three_tf32(x, m.w),
    ("product", "three TF32"): lambda m, x: three_tf32(x, m.w),
    ("product", "six bfloat16"): lambda m, x: six_bfloat16(x, m.w),
    ("short product", "three TF32"): lambda m, x: three_tf32(x, m.w),
    ("short product", "six bfloat16"): lambda m, x: six_bfloat16(x, m.w),
    ("convolution", "Winograd"): winograd,
    ("tanh", "by an exponential"): lambda m, x: 1 - 2 / (torch.exp(0.04 * x) + 1),
    ("tanh of inputs", "fast"): lambda m, x: fast_tanh(x),
    ("tanh of a convolution", "fast"): lambda m, x: F.max_pool2d(2 * fast_tanh(m.w(x)), 4),
    ("mish of a convolution", "fast"): lambda m, x: (m.w(x) - 0.7) * fast_tanh(F.softplus(m.w(x) - 0.7)),
    ("squared error", "TF32, which is not separable"): lambda m, x: ((eleven_bits(x) - 0.5) ** 2).mean(),
    ("whole numbers", "TF32, which is exact"): lambda m, x: eleven_bits(x) @ eleven_bits(m.w),
    ("complex sum", "in turn"): lambda m, x: sum(x.unbind(1)),
    ("rotary of angles", "three TF32"): lambda m, x: x + turned(three_tf32(x.flatten(0, 1), m.w).view_as(x)),
    ("rows added up in float16", "in float32"): lambda m, x: x.float().view(20, 20, 50).sum(0).half(),
}


@pytest.fixture(scope="module")
def oracles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Oracle]:
    folder = tmp_path_factory.mktemp("precision")
    return {
        name: oracle_of(folder, text(f"return {result}", inputs, layers))
        for name, (layers, result, inputs) in PROBLEMS.items()
    }


def judged(oracle: Oracle, candidate: Candidate, number: int) -> Comparison:
    """One draw of a candidate that the floor accepts."""
    [x] = oracle.loaded.draw(number, CPU)
    expected = oracle.expected("drawn", [x], 0)
    with torch.no_grad():
        mine = [candidate(oracle.model, x)]
    assert oracle.compare(expected, mine).wrong is None
    return oracle.judge(expected, mine)


@pytest.mark.parametrize("of", COARSE, ids=" ".join)
def test_coarse_operands_that_the_floor_accepts_are_told(
    of: tuple[str, str], oracles: dict[str, Oracle]
) -> None:
    for number in range(3):
        found = judged(oracles[of[0]], COARSE[of], number)
        [output] = found.precision
        assert found.wrong is not None
        assert found.wrong.allowed_norm == pytest.approx(output["bound"])
        assert output["separable"]


@pytest.mark.parametrize("of", HONEST, ids=" ".join)
def test_honest_float32_is_never_told(of: tuple[str, str], oracles: dict[str, Oracle]) -> None:
    for number in range(3):
        assert judged(oracles[of[0]], HONEST[of], number).wrong is None


def test_a_mean_of_squares_does_not_show_its_operands(oracles: dict[str, Oracle]) -> None:
    name = "squared error"
    [output] = judged(oracles[name], HONEST[name, "TF32, which is not separable"], 0).precision
    assert output["flagged"]
    assert not output["separable"]
    assert output["bound"] == 5e-5


def test_only_what_a_trace_shows_to_be_moved_has_the_bound_of_a_few_roundings(
    oracles: dict[str, Oracle],
) -> None:
    """The error of a product of whole numbers happens to be 0."""
    for name, moved in (("embedding", 1), ("complex flip", 1), ("whole numbers", 0), ("rotary", 0)):
        [output] = judged(oracles[name], lambda m, x: m(x) * (1 + 1e-6), 0).precision
        assert (output["moved"], output["refused"]) == (moved, moved)


def test_a_narrow_output_that_is_computed_keeps_its_floor(oracles: dict[str, Oracle]) -> None:
    found = judged(oracles["float16 relu"], lambda m, x: (x.relu().float() * 0.9996).half(), 0)
    [output] = found.precision
    assert found.wrong is None
    assert (output["moved"], output["flagged"], output["bound"]) == (False, False, 2.0**-10)


def test_a_bound_that_takes_too_long_decides_nothing_but_a_flag(
    oracles: dict[str, Oracle], monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle = oracles["bag"]
    monkeypatch.setattr(oracle, "_bounds", {})
    monkeypatch.setattr(precision, "MOST_SECONDS", 0.0)
    found = judged(oracle, COARSE["bag", "16-bit table"], 0)
    assert found.wrong is None
    assert found.precision[0]["unknown"] == "it took longer than 0 s"
    assert found.precision[0]["flagged"]
    assert not judged(oracle, HONEST["bag", "in turn"], 0).precision


def test_a_program_that_only_the_floor_accepts_is_told_why_it_is_wrong(court: Court) -> None:
    source = """
import torch
from torch import nn

class ModelNew(nn.Module):
    def __init__(self, vocabulary, features):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, features)

    def forward(self, index):
        table = self.embedding.weight
        step = table.abs().amax(1, keepdim=True) / 32767
        return (table / step).round().short()[index] * step[index]
"""
    verdict = court.verdict(source, "level1/15")
    assert verdict.status is Status.WRONG_OUTPUT
    assert verdict.reason.startswith("values: drawn: output 0: ")
    assert "(allowed: 4.77e-07)" in verdict.reason
    assert verdict.reason.endswith("; the reference only moves data there, which costs no rounding")
    [output] = verdict.checks[-1].figures["precision"]
    assert output["refused"]
    assert output["moved"]
    assert output["bound"] < 1e-6 < output["error"] < 5e-5


def test_what_no_bound_can_tell_is_accepted_and_flagged(court: Court, tmp_path: Path) -> None:
    source = text("return x.mean()", "torch.rand(300, 300)")
    rounded = as_candidate(source).replace("x.mean()", "x.mean() * (1 + 2e-6)")
    verdict = court.verdict(rounded, written(tmp_path, source))
    assert verdict.status is Status.CORRECT
    assert verdict.flags == (Flag.PRECISION_NOT_SEPARABLE,)
    [check] = [check for check in verdict.checks if check.name == "precision"]
    assert check.seen.startswith("output 0 is off by ")
    assert 1e-6 < check.figures["error"] < 3e-6
    assert check.figures["smallest"] < check.figures["honest"]


def test_what_no_bound_is_known_for_is_accepted_and_flagged(court: Court, tmp_path: Path) -> None:
    """The reference refuses other draws that are near."""
    source = text("assert not 1.001 < x.max() < 1.01; return x.mean()", "torch.rand(300, 300)")
    rounded = as_candidate(source).replace("x.mean()", "x.mean() * (1 + 2e-6)")
    for candidate, flags in ((as_candidate(source), ()), (rounded, (Flag.PRECISION_NOT_SEPARABLE,))):
        verdict = court.verdict(candidate, written(tmp_path, source))
        assert verdict.status is Status.CORRECT
        assert verdict.flags == flags
    [check] = [check for check in verdict.checks if check.name == "precision"]
    assert check.seen.endswith(
        "and what coarse operands make there is not known: the reference could not be run so"
    )


def test_coarse_operands_in_a_small_branch_beside_a_large_one_are_flagged(tmp_path: Path) -> None:
    branches = "self.a = nn.Linear(256, 256, bias=False); self.b = nn.Linear(256, 256, bias=False)"
    problem = text("return self.a(x) + 0.002 * torch.tanh(self.b(x))", "torch.randn(128, 256)", branches)
    oracle = oracle_of(tmp_path, problem)
    expected = oracle.expected("drawn", oracle.loaded.draw(1, CPU), 2)
    (x,), model = expected.arguments, oracle.model

    def verdict(branch: torch.Tensor) -> tuple[bool, bool]:
        judged = oracle.judge(expected, [(model.a(x) + 0.002 * torch.tanh(branch)).detach()])
        return judged.wrong is None, any(each["flagged"] for each in judged.precision)

    in_turn = (x[:, None] * model.b.weight).cumsum(-1)[..., -1]
    assert verdict(F.linear(x.bfloat16(), model.b.weight.bfloat16()).float()) == (True, True)
    assert verdict(in_turn) == (True, False)
    assert verdict(x @ model.b.weight.t()) == (True, False)

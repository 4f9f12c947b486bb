"""Honest float32 passes whatever order it adds in; operands of eleven bits do not, on the same problems.

A numerical study: each honest algorithm is written out here (numpy adds one after another in float32), each
problem is judged on drawn inputs and on every variant, as in the trials.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from kernelproof.verifier.referee.correctness import tolerance
from kernelproof.verifier.referee.correctness.oracle import Comparison, Oracle
from kernelproof.verifier.referee.correctness.plain_arithmetic import Steps, eleven_bits, in_turn
from kernelproof.verifier.referee.inputs.variants import ACCURATE, VARIANTS, finite
from tests.referee.problems import CPU, oracle_of, text

Candidate = Callable[[nn.Module, torch.Tensor], torch.Tensor]


def total(rows: torch.Tensor, lanes: int = 1) -> torch.Tensor:
    """The sum over the last dimension, one float32 term after another, in so many partial sums."""
    terms = rows.numpy()
    whole = terms.shape[-1] // lanes * lanes
    parts = terms[..., :whole].reshape(*terms.shape[:-1], -1, lanes)
    sums = np.add.accumulate(parts, axis=-2, dtype=np.float32)[..., -1, :]
    sums = np.concatenate([sums, terms[..., whole:]], axis=-1)
    return torch.from_numpy(np.add.accumulate(sums, axis=-1, dtype=np.float32)[..., -1].copy())


def kahan(rows: torch.Tensor) -> torch.Tensor:
    sums = lost = torch.zeros(rows.shape[0])
    for term in rows.unbind(1):
        term = term - lost
        after = sums + term
        sums, lost = after, (after - sums) - term
    return sums


def one_pass(rows: torch.Tensor, lanes: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    mean = total(rows, lanes) / rows.shape[1]
    return mean, (total(rows * rows, lanes) / rows.shape[1] - mean * mean).clamp(min=0)


def normalised(x: torch.Tensor, rows: int, lanes: int = 1) -> torch.Tensor:
    flat = x.reshape(rows, -1)
    mean, variance = one_pass(flat, lanes)
    return ((flat - mean[:, None]) * (variance[:, None] + 1e-5).rsqrt()).reshape(x.shape)


def normalised_in_two_passes(x: torch.Tensor, rows: int) -> torch.Tensor:
    flat = x.reshape(rows, -1)
    centred = flat - total(flat)[:, None] / flat.shape[1]
    variance = total(centred * centred) / flat.shape[1]
    return (centred * (variance[:, None] + 1e-5).rsqrt()).reshape(x.shape)


def softmax_in_turn(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    powers = (x - x.amax(1, keepdim=True)).exp()
    return powers / total(powers)[:, None]


def softmax_online(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """A running maximum and a running sum, over blocks."""
    most, sums = torch.full((x.shape[0], 1), -torch.inf), torch.zeros(x.shape[0], 1)
    for block in x.split(64, 1):
        higher = torch.maximum(most, block.amax(1, keepdim=True))
        sums = sums * (most - higher).exp() + total((block - higher).exp())[:, None]
        most = higher
    return (x - most).exp() / sums


def product_in_turn(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    sums = torch.zeros(x.shape[0], model.w.shape[1])
    for k in range(x.shape[1]):
        sums += x[:, k : k + 1] * model.w[k]
    return sums


def split_k(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    parts = zip(x.split(100, 1), model.w.split(100, 0), strict=True)
    return torch.stack([left @ right for left, right in parts]).sum(0)


CONV_NORM = ("self.c = nn.Conv2d(3, 16, 3); self.n = nn.InstanceNorm2d(16)", "self.n(self.c(x))")
PROBLEMS: dict[str, tuple[str, str, str]] = {
    "sum": ("pass", "x.sum(1)", "torch.rand(8, 200000)"),
    "mean": ("pass", "x.mean(1)", "torch.randn(8, 200000)"),
    "short mean": ("pass", "x.mean(1)", "torch.randn(8, 5000)"),
    "variance": ("pass", "x.var(1)", "torch.rand(8, 20000)"),
    "group norm": ("self.n = nn.GroupNorm(2, 8, affine=False)", "self.n(x)", "torch.rand(1, 8, 448, 448)"),
    "conv instance norm": (*CONV_NORM, "torch.rand(2, 3, 66, 66)"),
    "layer norm": (
        "self.n = nn.LayerNorm((128, 64, 16), elementwise_affine=False)",
        "self.n(x)",
        "torch.rand(3, 128, 64, 16)",
    ),
    "batch norm": ("self.n = nn.BatchNorm2d(4, affine=False)", "self.n(x)", "torch.rand(4, 4, 128, 128)"),
    "gate sums": ("pass", "(0.7 * torch.sigmoid(x)).sum(1)", "torch.rand(16, 16384)"),
    "softmax": ("pass", "x.softmax(1)", "torch.rand(8, 16384)"),
    "product": ("self.w = nn.Parameter(torch.randn(4000, 32))", "x @ self.w", "torch.rand(32, 4000)"),
    "norm": ("pass", "x / torch.norm(x)", "torch.rand(128, 1024)"),
    "squared error": ("pass", "F.mse_loss(x, torch.zeros_like(x))", "torch.rand(128, 1024)"),
}
HONEST: dict[tuple[str, str], Candidate] = {
    ("sum", "in turn"): lambda m, x: total(x),
    ("sum", "pairwise"): lambda m, x: torch.from_numpy(x.numpy().sum(1)),
    ("mean", "in turn"): lambda m, x: total(x) / x.shape[1],
    ("short mean", "kahan"): lambda m, x: kahan(x) / x.shape[1],
    ("variance", "one pass"): lambda m, x: one_pass(x)[1] * (x.shape[1] / (x.shape[1] - 1)),
    ("group norm", "one pass"): lambda m, x: normalised(x, 2, lanes=4),
    ("conv instance norm", "one pass"): lambda m, x: normalised(m.c(x), 32),
    ("layer norm", "one pass"): lambda m, x: normalised(x, 3),
    ("batch norm", "one pass"): lambda m, x: normalised(x.transpose(0, 1), 4).transpose(0, 1),
    ("gate sums", "in turn"): lambda m, x: total(0.7 * torch.sigmoid(x)),
    ("softmax", "in turn"): softmax_in_turn,
    ("softmax", "online"): softmax_online,
    ("product", "in turn"): product_in_turn,
    ("product", "split k"): split_k,
    ("norm", "in turn"): lambda m, x: x / total((x * x).reshape(1, -1)).sqrt(),
    ("squared error", "in turn"): lambda m, x: (total((x * x).reshape(1, -1)) / x.numel())[0],
}


def half(x: torch.Tensor) -> torch.Tensor:
    return x.half().float()


def bfloat16(x: torch.Tensor) -> torch.Tensor:
    return x.bfloat16().float()


COARSE: dict[tuple[str, str], Candidate] = {
    (name, rounded.__name__): made
    for rounded in (eleven_bits, half, bfloat16)
    for name, made in {
        "product": lambda m, x, r=rounded: r(x) @ r(m.w),
        "conv instance norm": lambda m, x, r=rounded: m.n(F.conv2d(r(x), r(m.c.weight), m.c.bias)),
        "group norm": lambda m, x, r=rounded: m.n(r(x)),
        "layer norm": lambda m, x, r=rounded: r(m.n(x)),
        "batch norm": lambda m, x, r=rounded: normalised(r(x).transpose(0, 1), 4).transpose(0, 1),
    }.items()
}


@pytest.fixture(scope="module")
def oracles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Oracle]:
    folder = tmp_path_factory.mktemp("plain")
    return {
        name: oracle_of(folder, text(f"return {result}", inputs, layers))
        for name, (layers, result, inputs) in PROBLEMS.items()
    }


def judged(oracle: Oracle, candidate: Candidate, trial: str, number: int) -> Comparison | None:
    """As in the trials; None where the inputs decide nothing."""
    arguments = oracle.loaded.draw(number, CPU)
    variant = next((v for v in VARIANTS if v.name == trial), None)
    if variant is not None:
        changed = variant.apply(arguments, number)
        assert changed is not None
        arguments = changed
    native = oracle.native(arguments, 0)
    expected = oracle.expected(trial, arguments, 0, native=native, forgiving=variant is not None)
    if not finite(native.outputs) or expected.sticks[0].reference_relative_norm >= ACCURATE:
        return None
    with torch.no_grad():
        return oracle.compare(expected, [candidate(oracle.model, arguments[0])])


@pytest.mark.few(40)
@pytest.mark.parametrize("of", HONEST, ids=" ".join)
@pytest.mark.parametrize("trial", ["drawn", *(v.name for v in VARIANTS)])
def test_honest_float32_is_right_on_all_inputs(
    of: tuple[str, str], trial: str, oracles: dict[str, Oracle]
) -> None:
    found = judged(oracles[of[0]], HONEST[of], trial, 1)
    assert found is None or found.wrong is None, found.wrong.in_words


@pytest.mark.few(5)
@pytest.mark.parametrize("of", COARSE, ids=" ".join)
def test_operands_of_eleven_bits_or_fewer_are_wrong_on_every_draw(
    of: tuple[str, str], oracles: dict[str, Oracle]
) -> None:
    for number in range(3):
        found = judged(oracles[of[0]], COARSE[of], "drawn", number)
        assert found is not None
        assert found.wrong is not None


@pytest.mark.parametrize(
    ("of", "trial"),
    [
        (("group norm", "one pass"), "drawn"),
        (("layer norm", "one pass"), "negative"),
        (("gate sums", "in turn"), "large"),
        (("conv instance norm", "one pass"), "tiny"),
    ],
)
def test_what_was_refused_before_is_right_by_its_plain_arithmetic(
    of: tuple[str, str], trial: str, oracles: dict[str, Oracle]
) -> None:
    """So the study covers what plain arithmetic is for."""
    found = judged(oracles[of[0]], HONEST[of], trial, 1)
    assert found is not None
    assert found.plain
    [output] = found.errors
    assert output.allowed_norm is not None
    assert tolerance.norm_floor(torch.float32) < output.relative_norm <= output.allowed_norm


@pytest.mark.parametrize("value", [-1.2121, 1.1995, -2.2754])
def test_a_variance_of_equal_values_may_be_zero_in_one_order_and_not_in_another(
    value: float, oracles: dict[str, Oracle]
) -> None:
    """In turn rounding leaves one above zero. In four sums it is below, and becomes zero: the error of the
    mean is divided by sqrt(eps) then."""
    x = torch.full((1, 8, 448, 448), value)
    assert one_pass(x.reshape(2, -1), lanes=4)[1].max() == 0.0 < one_pass(x.reshape(2, -1))[1].min()
    expected = oracles["group norm"].expected("constant", [x], 0, forgiving=True)
    found = oracles["group norm"].compare(expected, [normalised(x, 2, lanes=4)])
    assert found.wrong is None


@pytest.mark.parametrize("lanes", [2, 4])
def test_a_mean_of_equal_values_may_be_off_in_one_order_and_not_in_another(
    lanes: int, oracles: dict[str, Oracle]
) -> None:
    x = torch.full((1, 8, 448, 448), -0.715342)
    expected = oracles["group norm"].expected("constant", [x], 0, forgiving=True)
    found = oracles["group norm"].compare(expected, [normalised(x, 2, lanes=lanes)])
    assert found.wrong is None


def test_a_variance_may_lose_in_two_passes_what_one_pass_keeps(oracles: dict[str, Oracle]) -> None:
    """Behind a row of large values the squares of 0.25 are added exactly, and those of its distance from the
    mean are lost. PyTorch's batch norm does that in channels-last order."""
    x = torch.full((4, 4, 128, 128), 0.25)
    x[0] = 5.0 * torch.randn(4, 128, 128, generator=torch.Generator().manual_seed(0))
    expected = oracles["batch norm"].expected("mixed rows", [x], 0, forgiving=True)
    found = oracles["batch norm"].compare(
        expected, [normalised_in_two_passes(x.transpose(0, 1), 4).transpose(0, 1)]
    )
    assert found.wrong is None
    assert found.errors[0].relative_norm > tolerance.norm_floor(torch.float32)


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1000, 30011]),
    st.sampled_from(["uniform", "normal", "equal", "squares", "sparse", "far below"]),
    st.integers(-20, 20),
)
@settings(max_examples=40)
def test_a_sum_in_turn_is_reckoned_as_it_comes_out(seed: int, count: int, kind: str, power: int) -> None:
    source = torch.Generator().manual_seed(seed)
    x = torch.rand(4, count, generator=source)
    normal = torch.randn(4, count, generator=source)
    terms = {
        "uniform": x,
        "normal": normal,
        "equal": x[:, :1].expand(4, count),
        "squares": x * x,
        "sparse": x * (x < 0.1),
        "far below": -16 * (1 + normal.abs()),
    }[kind] * 2.0**power
    exact = terms.double().sum(1)
    came, reckoned = total(terms).double() - exact, in_turn(terms) - exact
    chance = 2.0**-24 * count**0.5 * terms.double().cumsum(1).abs().amax(1)
    assert bool(((came - reckoned).abs() <= 0.1 * came.abs() + chance).all())


def test_chunks_do_not_change_a_sum_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    terms = torch.rand(3, 1000)
    whole = in_turn(terms)
    monkeypatch.setattr("kernelproof.verifier.referee.correctness.plain_arithmetic.CHUNK", 7)
    assert torch.allclose(in_turn(terms), whole, rtol=1e-12, atol=0)


LAYERS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "linear": nn.Linear(16, 12),
    "convolution": nn.Conv2d(8, 6, 3, stride=2, padding=1, groups=2),
    "transposed": nn.ConvTranspose2d(8, 6, 3, stride=2, output_padding=1, groups=2),
    "layer norm": nn.LayerNorm((16,)),
    "group norm": nn.GroupNorm(2, 8),
    "batch norm": nn.BatchNorm2d(8),
    "instance norm": nn.InstanceNorm2d(8),
    "softmax": lambda x: x.softmax(1),
    "log softmax": lambda x: x.log_softmax(-2),
    "logsumexp": lambda x: x.logsumexp((1, 3), keepdim=True),
    "mean": lambda x: x.mean((2, 3)),
    "sum of all": lambda x: x.sum(),
    "sum over a middle one": lambda x: x.sum(1, keepdim=True),
    "cumulative sum": lambda x: x.cumsum(1),
    "variance": lambda x: x.var((0, 2)),
    "deviation": lambda x: x.std(1, correction=0, keepdim=True),
    "both": lambda x: torch.cat(torch.var_mean(x, dim=(1, 2))),
    "norm": lambda x: x.norm(dim=1),
    "norm of all": lambda x: torch.norm(x),
    "sum of sizes": lambda x: torch.linalg.vector_norm(x, 1, dim=-1),
    "squared error": lambda x: F.mse_loss(x, x.flip(1)),
    "batched product": lambda x: x @ x.transpose(-1, -2),
    "matrix and vector": lambda x: x[0, 0] @ x[0, 0, 0],
    "two vectors": lambda x: x[0, 0, 0] @ x[0, 0, 1],
    "einsum": lambda x: torch.einsum("bcij,bcik->bjk", x, x),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x),
}


@pytest.mark.parametrize("name", LAYERS)
def test_the_plain_way_computes_the_same(name: str) -> None:
    """Each operator that has a plain way gives what torch gives, but for rounding."""
    x = torch.randn(2, 8, 16, 16, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        usual = LAYERS[name](x)
        with Steps() as steps:
            plain = LAYERS[name](x)
        assert steps.count > 0
        assert (plain.shape, plain.dtype) == (usual.shape, usual.dtype)
        torch.testing.assert_close(plain, usual, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mean", [0.3, 0.5, 0.7, -0.6])
def test_a_variance_that_is_lost_beside_epsilon_is_off_by_what_one_pass_costs(mean: float) -> None:
    """As behind a convolution with a bias, of tiny inputs: all of the error is the variance's."""
    x = mean + 1e-4 * torch.randn(64, 4096, generator=torch.Generator().manual_seed(5))
    exact = F.layer_norm(x.double(), (4096,))
    with torch.no_grad(), Steps():
        plain = F.layer_norm(x, (4096,))
    far, honest = (float((each.double() - exact).norm()) for each in (plain, normalised(x, 64)))
    assert honest <= tolerance.PLAIN_MULTIPLE * far


def test_eleven_bits_are_those_of_float16_in_its_range() -> None:
    x = torch.randn(10_000, generator=torch.Generator().manual_seed(4))
    near = (eleven_bits(x) - x.half().float()).abs()
    assert float((near > 0).float().mean()) < 1e-3  # ties, which float16 rounds to even
    assert torch.isnan(eleven_bits(torch.tensor([float("nan")]))).all()
    edge = torch.tensor([torch.finfo(torch.float32).max, float("inf")])
    assert torch.equal(eleven_bits(edge), edge)

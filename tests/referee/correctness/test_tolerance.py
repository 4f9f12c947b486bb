"""The tolerance: what is as good as the reference passes, what is of a lower class or elsewhere does not."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelproof.types import ErrorClass, ErrorStatistics
from kernelproof.verifier.referee.correctness import comparing, tolerance
from kernelproof.version import POLICY

FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
seeds = st.integers(0, 2**32 - 1)


def judged(
    candidate: torch.Tensor, native: torch.Tensor, truth: torch.Tensor | None = None
) -> ErrorStatistics:
    return comparing.compare(candidate, native, truth, trial="t", output=0)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def tf32(x: torch.Tensor) -> torch.Tensor:
    """float32 with the mantissa rounded to TF32's ten bits."""
    return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def product(seed: int, depth: int) -> tuple[torch.Tensor, torch.Tensor]:
    source = generator(seed)
    return torch.randn(65, depth, generator=source), torch.randn(depth, 33, generator=source)


@given(seeds, st.sampled_from(FLOATS), st.integers(-12, 12), st.lists(st.integers(0, 9), max_size=3))
def test_reference_passes_against_itself(
    seed: int, dtype: torch.dtype, magnitude: int, shape: list[int]
) -> None:
    truth = torch.randn(shape, generator=generator(seed), dtype=torch.float64) * 2.0**magnitude
    native = truth.to(dtype, copy=True)
    before = native.clone()
    assert judged(native, native, truth).wrong == 0
    assert judged(native, native).wrong == 0
    assert torch.equal(native, before)


@pytest.mark.parametrize(("left_over", "wrong"), [(3.7e-29, 0), (1e-9, 1)])
def test_what_an_exponent_kept_in_range_leaves_of_nothing_is_nothing(left_over: float, wrong: int) -> None:
    truth = torch.zeros(100, dtype=torch.float64)
    found = judged(torch.full((100,), left_over), truth.float(), truth)
    assert min(found.wrong, 1) == wrong
    assert tolerance.error_class(found, "tf32") == (ErrorClass.WORSE if wrong else ErrorClass.FP32_EQUIVALENT)
    beside = truth.clone()
    beside[0] = 1e-20  # not all is zero: then sizes are relative again
    assert judged(torch.full((100,), 3.7e-20), beside.float(), beside).wrong > 0


@given(seeds, st.integers(-40, 40))
def test_zeros_a_constant_and_another_draw_are_refused_at_any_magnitude(seed: int, magnitude: int) -> None:
    first, second = torch.randn(2, 64, 100, generator=generator(seed), dtype=torch.float64)
    truth = first.softmax(-1) * 2.0**magnitude
    native = truth.float()
    other = (second.softmax(-1) * 2.0**magnitude).float()
    for lazy in (torch.zeros_like(native), torch.full_like(native, float(truth.mean())), other):
        assert judged(lazy, native, truth).wrong > 0


@given(seeds, st.integers(16, 700))
@settings(max_examples=30)
def test_products_of_rounded_operands_are_refused_behind_float32(seed: int, depth: int) -> None:
    a, b = product(seed, depth)
    truth, native = a.double() @ b.double(), a @ b
    assert judged(tf32(a) @ tf32(b), native, truth).wrong > 0
    assert judged(a.half().float() @ b.half().float(), native, truth).wrong > 0
    assert judged(a.bfloat16().float() @ b.bfloat16().float(), native, truth).wrong > 0


@given(seeds, st.integers(16, 700), st.integers(1, 16))
@settings(max_examples=30)
def test_products_summed_in_another_order_pass(seed: int, depth: int, chunk: int) -> None:
    a, b = product(seed, depth)
    parts = zip(reversed(a.split(chunk, 1)), reversed(b.split(chunk, 0)), strict=True)
    total = torch.zeros(65, 33)
    for left, right in parts:
        total += left @ right
    assert judged(total, a @ b, a.double() @ b.double()).wrong == 0


@pytest.mark.ci
@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_a_million_terms_summed_one_after_another_pass(shift: float) -> None:
    terms = torch.randn(1_000_000, 8, generator=generator(5)) + shift
    total = torch.zeros(8)
    for term in terms:
        total += term
    found = judged(total, terms.sum(0), terms.double().sum(0))
    assert found.wrong == 0
    assert found.relative_norm > 0


@given(seeds, st.integers(0, 98), st.sampled_from([math.nan, math.inf, -math.inf]))
def test_nan_and_infinities_stand_where_the_truth_has_them(seed: int, place: int, special: float) -> None:
    truth = torch.randn(100, generator=generator(seed), dtype=torch.float64)
    truth[place] = special
    native = truth.float()
    assert judged(native.clone(), native, truth).wrong == 0
    for other in (math.nan, math.inf, -math.inf, 0.0):
        if other != special and not (math.isnan(other) and math.isnan(special)):
            candidate = native.clone()
            candidate[place] = other
            found = judged(candidate, native, truth)
            assert found.wrong == 1
            assert found.first_bad == (place,)
    moved = native.clone()
    moved[place + 1] = special
    assert judged(moved, native, truth).wrong == 1


@given(seeds, st.integers(0, 99))
def test_one_nan_among_finite_values_is_refused_and_counted(seed: int, place: int) -> None:
    native = torch.randn(10, 10, generator=generator(seed))
    candidate = native.clone()
    candidate.view(-1)[place] = math.nan
    found = judged(candidate, native, native.double())
    assert (found.wrong, found.nan, found.first_bad) == (1, 1, (place // 10, place % 10))


@given(
    st.sampled_from([torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]),
    seeds,
    st.integers(0, 29),
)
def test_integers_are_equal_or_wrong(dtype: torch.dtype, seed: int, place: int) -> None:
    native = torch.randint(0, 2, (5, 6), generator=generator(seed)).to(dtype)
    assert judged(native.clone(), native).wrong == 0
    candidate = native.clone()
    flat = candidate.view(-1)
    flat[place] = 1 - int(flat[place])
    found = judged(candidate, native)
    assert (found.wrong, found.first_bad) == (1, (place // 6, place % 6))


def test_large_integers_are_not_compared_as_floats() -> None:
    native = torch.tensor([2**62])
    assert judged(native + 1, native).wrong == 1


@given(seeds)
def test_complex_outputs_are_compared_in_both_parts(seed: int) -> None:
    truth = torch.randn(40, generator=generator(seed), dtype=torch.complex128)
    native = truth.to(torch.complex64)
    assert judged(native, native, truth).wrong == 0
    assert judged(native.conj(), native.conj(), truth.conj()).wrong == 0
    assert judged(native.conj(), native, truth).wrong > 0
    assert judged(native.real.to(torch.complex64), native, truth).wrong > 0


@pytest.mark.parametrize("chunk", [1, 7, 50, 99, 100])
@pytest.mark.parametrize("broken", [math.nan, math.inf, 1e6])
def test_chunks_do_not_change_the_judgement(
    chunk: int, broken: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth = torch.randn(100, generator=generator(1), dtype=torch.float64)
    truth[30] = math.inf
    native = truth.float()
    candidate = native.clone()
    candidate[[49, 50, 98]] = broken
    whole = judged(candidate, native, truth)
    monkeypatch.setattr(comparing, "CHUNK", chunk)
    parts = judged(candidate, native, truth)
    inexact = {"relative_norm", "reference_relative_norm"}
    assert parts.model_dump(exclude=inexact) == whole.model_dump(exclude=inexact)
    assert parts.relative_norm == pytest.approx(whole.relative_norm)
    assert (whole.wrong, whole.first_bad) == (3, (49,))


def test_where_zero_is_right_anything_of_size_is_wrong() -> None:
    zeros = torch.zeros(10)
    assert judged(-zeros, zeros, zeros.double()).wrong == 0
    assert judged(zeros + 1e-9, zeros, zeros.double()).wrong == 10


def test_many_small_errors_are_refused_though_no_element_is_out_of_bounds() -> None:
    truth = torch.ones(10_000, dtype=torch.float64)
    candidate = (truth * (1 + 3 * tolerance.norm_floor(torch.float32))).float()
    found = judged(candidate, truth.float(), truth)
    assert (found.wrong, found.first_bad) == (1, None)


def test_a_truth_that_computes_something_else_is_set_aside() -> None:
    native = torch.randn(100, generator=generator(2))
    assert judged(native, native, truth=-native.double()).wrong == 0
    assert judged(-native, native, truth=-native.double()).wrong > 0


@pytest.mark.parametrize("value", [1e300, -1e300, 1.7e308, math.inf, math.nan])
@pytest.mark.parametrize("base", [0.0, 1.0, -1.7e308])
def test_a_record_holds_finite_numbers_only(value: float, base: float) -> None:
    native = torch.full((4,), base, dtype=torch.float64)
    found = judged(torch.full_like(native, value), native)
    assert found.wrong > 0 or base == -1.7e308
    assert all(math.isfinite(v) for v in found.model_dump().values() if isinstance(v, float))


def test_timed_outputs_get_the_room_that_two_accepted_results_may_need() -> None:
    assert tolerance.timed_floor(torch.float32, 0.0) == 2 * tolerance.norm_floor(torch.float32)
    assert tolerance.timed_floor(torch.float32, 1e-3) == 2 * tolerance.REFERENCE_MULTIPLE * 1e-3


@given(
    seeds,
    st.sampled_from([torch.float16, torch.bfloat16]),
    st.integers(-6, 6),
    st.floats(0.0, 1.0),
    st.floats(0.0, 30.0),
)
def test_who_is_near_to_the_native_result_is_right(
    seed: int, dtype: torch.dtype, magnitude: int, share: float, coarse: float
) -> None:
    """Wherever the truth is, if the native result is `coarse` times as far from it as rounding is."""
    source = generator(seed)
    truth, first, second = torch.randn(3, 400, generator=source, dtype=torch.float64) * 2.0**magnitude
    native = (truth + coarse * torch.finfo(dtype).eps * first).to(dtype)
    error = comparing.yardstick(native, truth).reference_relative_norm
    floor = tolerance.near_floor(dtype, error)
    assert floor > 0
    mine = (native.double() + share * floor * second).to(dtype)
    if comparing.compare(mine, native, None, trial="t", output=0, floor=floor).wrong == 0:
        assert judged(mine, native, truth).wrong == 0


@given(seeds, st.integers(256, 700))
@settings(max_examples=30)
def test_products_of_eight_bit_integers_are_refused_behind_bfloat16(seed: int, depth: int) -> None:
    a, b = (operand.bfloat16() for operand in product(seed, depth))
    truth, native = a.double() @ b.double(), a @ b
    rows, columns = (x.float().abs().amax(dim, keepdim=True) / 127 for x, dim in ((a, 1), (b, 0)))
    integers = ((a / rows).round() * rows) @ ((b / columns).round() * columns)
    assert judged(integers.bfloat16(), native, truth).wrong > 0
    halves = [left.float() @ right.float() for left, right in zip(a.chunk(2, 1), b.chunk(2, 0), strict=True)]
    rounded_twice = halves[0].bfloat16() + halves[1].bfloat16()
    assert judged(rounded_twice, native, truth).wrong == 0


@pytest.mark.parametrize("number", ["REFERENCE_MULTIPLE", "NORMWISE_ROUNDOFFS"])
def test_another_policy_has_another_hash(monkeypatch: pytest.MonkeyPatch, number: str) -> None:
    before = tolerance.policy_sha256()
    monkeypatch.setattr(tolerance, number, 9.0)
    assert tolerance.policy_sha256() != before


@given(
    seeds,
    st.sampled_from((*FLOATS, torch.int64, torch.bool, torch.complex64)),
    st.integers(-45, 40),
    st.sampled_from([0.0, 1e-7, 1e-5, 8e-5, 2e-4, 1e-2, 1.0]),
    st.sampled_from([None, math.nan, math.inf, -math.inf, 0.0]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([comparing.CHUNK, 50]),
)
@settings(max_examples=900)
def test_what_is_surely_within_is_within(
    seed: int,
    dtype: torch.dtype,
    magnitude: int,
    error: float,
    odd: float | None,
    both: bool,
    own: bool,
    chunk: int,
) -> None:
    source = generator(seed)
    exact = torch.randn(7, 31, generator=source, dtype=torch.float64).exp() * 2.0**magnitude
    noise = torch.randn(7, 31, generator=source, dtype=torch.float64)
    noise = noise * (exact if own else exact.square().mean().sqrt())
    native, mine = exact.to(dtype), (exact + error * noise).to(dtype)
    if odd is not None and dtype.is_floating_point:
        mine[3, 5] = odd
        native[3, 5] = odd if both else native[3, 5]
    floor = tolerance.timed_floor(dtype, 1e-7)
    found = comparing.compare(mine, native, None, trial="t", output=0, floor=floor)
    near = comparing.Nearness(mine, native)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparing, "CHUNK", chunk)
        near.within(10 * floor)  # the same look serves the floor
        assert not near.within(floor) or found.wrong == 0


@given(seeds, st.sampled_from([torch.float64, torch.float32]), st.integers(-12, 12))
def test_rounding_is_surely_within(seed: int, dtype: torch.dtype, magnitude: int) -> None:
    """Or timed calls would be compared the long way every time."""
    exact = torch.randn(64, 33, generator=generator(seed), dtype=torch.float64) * 2.0**magnitude
    native = exact.to(dtype)
    mine = torch.nextafter(native, torch.zeros_like(native))
    assert comparing.Nearness(mine, native).within(tolerance.timed_floor(dtype, 1e-7))
    assert comparing.Nearness(torch.empty(0), torch.empty(0)).within(1e-4)


@given(seeds, st.booleans())
def test_errors_whose_largest_is_beyond_the_floor_are_surely_within_by_their_norm(
    seed: int, own: bool
) -> None:
    """Of an honest kernel's millions of elements one is five times as far off as they are in norm."""
    source = generator(seed)
    native = torch.randn(100_000, generator=source)
    far = 5e-5 * torch.randn(100_000, generator=source)
    near = comparing.Nearness(native + far * (native if own else 1.0), native)
    assert float(far.abs().max()) > 1.5e-4
    assert near.within(1e-4)


@given(seeds)
def test_errors_in_proportion_are_surely_within_where_few_elements_are_large(seed: int) -> None:
    """As after a softmax, whose largest elements are a hundred times the root mean square."""
    source = generator(seed)
    native = (3 * torch.randn(1000, generator=source)).exp()
    mine = native * (1 + 4e-5 * (2 * torch.rand(1000, generator=source) - 1))
    assert comparing.Nearness(mine, native).within(tolerance.timed_floor(torch.float32, 1e-7))


@pytest.mark.parametrize("own", [False, True])
def test_an_error_of_all_elements_beyond_the_floor_is_not_surely_within(own: bool) -> None:
    """No element is beyond its own bound there, only the whole is, in norm."""
    native = (3 * torch.randn(1000, generator=generator(1))).exp()
    far = native if own else native.square().mean().sqrt()
    near = comparing.Nearness(native + 1.05e-4 * far, native)
    assert not near.within(1e-4)
    assert near.within(2e-4)


def test_other_tolerances_are_another_policy() -> None:
    """Where this fails, raise POLICY: results under other tolerances are not ranked together. Then its hash
    belongs here."""
    assert (POLICY, tolerance.policy_sha256()[:12]) == ("14", "f3533c459df7")

"""Input variants: other values of the same form, and hands off values that carry a meaning."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.verifier.referee.inputs.structure import Forms
from kernelproof.verifier.referee.inputs.variants import VARIANTS, Variant, describe, finite, mixed_rows

ALL = (*VARIANTS, mixed_rows(VARIANTS))
every = pytest.mark.parametrize("variant", ALL, ids=lambda v: v.name)


def named(name: str) -> Variant:
    return next(v for v in ALL if v.name == name)


def randn(*shape: int, seed: int = 7) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@every
def test_a_variant_changes_values_and_nothing_else(variant: Variant) -> None:
    arguments = [randn(8, 9), (randn(5, 6).t().half(), 3), {"n": torch.arange(4)}]
    before = [arguments[0].clone(), arguments[1][0].clone()]
    changed = variant.apply(arguments, 11)
    assert changed is not None
    for now, then in ((changed[0], arguments[0]), (changed[1][0], arguments[1][0])):
        assert (now.shape, now.dtype, now.stride()) == (then.shape, then.dtype, then.stride())
        assert not torch.equal(now, then)
        assert finite(now)
    assert changed[1][1] == 3
    assert torch.equal(changed[2]["n"], torch.arange(4))
    assert torch.equal(arguments[0], before[0])
    assert torch.equal(arguments[1][0], before[1])


@every
@pytest.mark.parametrize("shape", [(2,), (3,), (40,), (1, 7), (1, 1, 9), (2, 3, 4, 5)], ids=str)
def test_every_shape_has_its_variants(variant: Variant, shape: tuple[int, ...]) -> None:
    changed = variant.apply([randn(*shape)], 4)
    assert changed is not None
    assert changed[0].shape == shape
    assert finite(changed[0])


@every
def test_a_variant_follows_from_its_seed(variant: Variant) -> None:
    first, again = (variant.apply([randn(20)], 5) for _ in range(2))
    assert first is not None
    assert again is not None
    assert torch.equal(first[0], again[0])


MEANT: dict[str, torch.Tensor] = {
    "integers": torch.arange(10),
    "booleans": torch.ones(4, 4, dtype=torch.bool),
    "float mask": (randn(30, 7) > 0).float(),
    "signs": (randn(40) > 0).float() * 2 - 1,
    "infinite mask": torch.zeros(9, 9).masked_fill(randn(9, 9) > 0, float("-inf")),
    "one-hot": torch.eye(12)[torch.arange(30) % 12],
    "probabilities by row": randn(12, 9).softmax(-1),
    "probabilities by column": randn(12, 9).softmax(0),
    "probabilities in the middle": randn(4, 12, 9).softmax(1),
    "permutation": randn(30).argsort().float(),
    "orthogonal": torch.linalg.qr(randn(20, 20)).Q,
    "constant": torch.full((5, 5), 3.25),
    "zeros": torch.zeros(9),
    "scalar": torch.tensor(1.5),
    "empty": torch.empty(0, 3),
    "complex": torch.randn(4, dtype=torch.complex64),
}


@pytest.mark.parametrize("tensor", MEANT.values(), ids=MEANT)
def test_values_that_carry_a_meaning_are_left_alone(tensor: torch.Tensor) -> None:
    assert all(variant.apply([tensor], 1) is None for variant in ALL)


@given(st.integers(0, 2**31), st.integers(2, 40), st.integers(2, 40))
def test_ordinary_draws_are_free(seed: int, rows: int, columns: int) -> None:
    source = torch.Generator().manual_seed(seed)
    draws = ([torch.rand(rows, columns, generator=source)] for _ in range(2))
    assert Forms(*draws).traits_by_input == {}


def test_signed_inputs_have_both_signs_where_draws_have_one() -> None:
    changed = named("signed").apply([torch.rand(1000)], 3)
    assert changed is not None
    assert float(changed[0].min()) < 0 < float(changed[0].max())


def test_ties_hold_equal_values() -> None:
    changed = named("ties").apply([randn(1000)], 3)
    assert changed is not None
    assert len(changed[0].unique()) < 50


def test_large_and_tiny_change_the_magnitude() -> None:
    for name, factor in (("large", 64.0), ("tiny", 2.0**-10)):
        changed = named(name).apply([randn(10)], 3)
        assert changed is not None
        assert torch.equal(changed[0], randn(10) * factor)


def test_where_large_ones_overflow_values_are_near_one() -> None:
    near = named("large").ways[1].apply([torch.rand(64, 4096), torch.rand(5).half()], 3)
    assert near is not None
    assert 2.0**-9 < float((near[0] - 1).std()) < 2.0**-7
    products = near[0].cumprod(1)[:, -1]
    assert float(products.min()) > 0.1
    assert float(products.max()) < 10
    assert near[1].dtype == torch.float16


@given(st.integers(0, 2**31), st.booleans())
def test_spikes_are_few_of_both_signs_and_too_large_for_exp(seed: int, milder: bool) -> None:
    variant = named("spikes")
    drawn = torch.rand(500, 400, generator=torch.Generator().manual_seed(seed))
    form = variant.ways[1 if milder else 0]
    changed = form.apply([drawn], seed)
    assert changed is not None
    other = changed[0] != drawn
    assert 3 <= int(other.sum()) <= 20  # of 200,000: one in ten thousand at most
    spikes = changed[0][other]
    least = 4.0 if milder else 128.0
    assert float(spikes.max()) >= least
    assert float(spikes.min()) <= -least
    assert bool(spikes.exp().isinf().any()) is not milder


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("way", "least"), [(2, 128.0), (3, 4.0)])
def test_spikes_for_roots_and_logarithms_have_the_sign_of_what_is_drawn(
    way: int, least: float, sign: int
) -> None:
    form = named("spikes").ways[way]
    drawn, both = sign * torch.rand(500, 400), torch.randn(500, 400)
    changed = form.apply([drawn, both], 3)
    assert changed is not None
    spikes = sign * changed[0][changed[0] != drawn]
    assert len(spikes) >= 3
    assert float(spikes.min()) >= least
    others = changed[1][changed[1] != both]
    assert float(others.min()) <= -least < least <= float(others.max())


def test_spikes_escape_a_sample_of_any_fixed_size() -> None:
    """A look at one element in a hundred often misses all, and in other calls hits many wrong places."""
    drawn, seen, counts = torch.rand(1000, 1000), 0, []
    for seed in range(60):
        changed = named("spikes").apply([drawn], seed)
        assert changed is not None
        other = changed[0] != drawn
        seen += bool(other.flatten()[::100].any())
        counts.append(int(other.sum()))
    assert seen < 40
    assert min(counts) < 10
    assert max(counts) > 50


@given(st.integers(0, 2**31))
def test_most_rows_are_as_drawn_and_the_others_are_other_variants(seed: int) -> None:
    parts = [named("negative"), named("large"), named("tiny")]
    drawn = torch.rand(60, 5, 7, generator=torch.Generator().manual_seed(seed)) + 0.5
    changed = mixed_rows(parts).apply([drawn], seed)
    assert changed is not None
    same = (changed[0] == drawn).reshape(300, 7)
    whole = same.all(1)
    assert bool((whole | ~same.any(1)).all())  # a row is changed, or it is not
    assert float(whole.double().mean()) >= 0.7
    assert not bool(whole.all())
    values = changed[0].reshape(300, 7)[~whole]
    before = drawn.reshape(300, 7)[~whole]
    wanted = torch.stack([part.change(before) for part in parts])
    assert bool((values == wanted).all(-1).any(0).all())


def test_rows_of_no_other_variant_are_none() -> None:
    assert mixed_rows([]).apply([randn(8, 9)], 1) is None


def test_finite_looks_into_everything() -> None:
    assert finite((randn(3), [torch.arange(3)]))
    assert not finite((randn(3), [randn(3) / 0]))


def test_inputs_are_described_for_the_record() -> None:
    assert describe([randn(2, 3).t(), 5]) == ({"shape": [3, 2], "dtype": "float32", "stride": [1, 3]},)


@pytest.mark.parametrize("shape", [(50, 8), (1, 50, 8), (40,), (6, 5, 4)])
def test_sparse_inputs_have_rows_of_zeros(shape: tuple[int, ...]) -> None:
    (variant,) = (each for each in VARIANTS if each.name == "sparse")
    x = torch.rand(shape) + 1
    arguments = variant.apply([x], 1)
    assert arguments is not None
    found = arguments[0].reshape(max(shape[:2]) if len(shape) > 1 else shape[0], -1)
    few = (found == 0).all(1).float().mean()
    assert 0 < float(few) <= (0.6 if found.shape[1] > 1 else 1)
    assert bool(found.any())
    (milder,) = variant.ways[1:]
    assert milder.apply([x], 1) is not None


def test_a_single_row_is_not_all_zeros() -> None:
    (variant,) = (each for each in VARIANTS if each.name == "sparse")
    for seed in range(20):
        (found,) = variant.apply([torch.rand(1, 500) + 1], seed) or [torch.zeros(1)]
        assert bool(found.any())

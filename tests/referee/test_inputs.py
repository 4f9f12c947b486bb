"""Input variants: other values of the same form, and hands off values that carry a meaning."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pipeline.referee.answers.inputs import VARIANTS, Variant, describe, finite, free

every = pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.name)


def named(name: str) -> Variant:
    return next(v for v in VARIANTS if v.name == name)


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(7))


@every
def test_a_variant_changes_values_and_nothing_else(variant: Variant) -> None:
    arguments = [randn(8, 9), (randn(5, 6).t().half(), 3), {"n": torch.arange(4)}]
    before = [arguments[0].clone(), arguments[1][0].clone()]
    changed = variant.apply(arguments, 11)
    assert changed is not None
    for now, then in ((changed[0], arguments[0]), (changed[1][0], arguments[1][0])):
        assert (now.shape, now.dtype, now.stride()) == (then.shape, then.dtype, then.stride())
        assert not torch.equal(now, then)
    assert changed[1][1] == 3
    assert torch.equal(changed[2]["n"], torch.arange(4))
    assert torch.equal(arguments[0], before[0])
    assert torch.equal(arguments[1][0], before[1])


@every
def test_a_variant_follows_from_its_seed(variant: Variant) -> None:
    first, again = (variant.apply([randn(20)], 5) for _ in range(2))
    assert first is not None
    assert again is not None
    assert torch.equal(first[0], again[0])


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(10),
        torch.ones(4, 4, dtype=torch.bool),
        (randn(30, 7) > 0).float(),
        randn(12, 9).softmax(-1),
        randn(12, 9).softmax(0),
        randn(6, 6) @ randn(6, 6).T + (randn(6, 6) @ randn(6, 6).T).T,
        torch.full((5, 5), 3.25),
        torch.zeros(9),
        torch.tensor(1.5),
        torch.empty(0, 3),
        torch.randn(4, dtype=torch.complex64),
    ],
    ids=[
        "integers",
        "booleans",
        "float mask",
        "probabilities by row",
        "probabilities by column",
        "symmetric",
        "constant",
        "zeros",
        "scalar",
        "empty",
        "complex",
    ],
)
def test_values_that_carry_a_meaning_are_left_alone(tensor: torch.Tensor) -> None:
    assert not free(tensor)
    assert all(variant.apply([tensor], 1) is None for variant in VARIANTS)


@given(st.integers(0, 2**31), st.integers(2, 40), st.integers(2, 40))
def test_ordinary_draws_are_free(seed: int, rows: int, columns: int) -> None:
    source = torch.Generator().manual_seed(seed)
    assert free(torch.randn(rows, columns, generator=source))


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


def test_finite_looks_into_everything() -> None:
    assert finite((randn(3), [torch.arange(3)]))
    assert not finite((randn(3), [randn(3) / 0]))


def test_inputs_are_described_for_the_record() -> None:
    assert describe([randn(2, 3).t(), 5]) == ({"shape": [3, 2], "dtype": "float32", "stride": [1, 3]},)

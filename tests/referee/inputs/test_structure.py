"""The structure of drawn inputs is recognised, and a variant keeps it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelproof.verifier.referee.inputs.structure import Forms, recognise
from kernelproof.verifier.referee.inputs.variants import VARIANTS, Variant, mixed_rows

Draw = Callable[[torch.Generator], torch.Tensor]
Holds = Callable[[torch.Tensor], bool]


def randn(*shape: int) -> Draw:
    return lambda source: torch.randn(*shape, generator=source)


def definite(source: torch.Generator) -> torch.Tensor:
    a = torch.randn(3, 20, 20, generator=source)
    return a @ a.mT + torch.eye(20)


def blocks(source: torch.Generator) -> torch.Tensor:
    kept = (torch.arange(64) % 3 > 0).reshape(8, 1, 8, 1)
    return (torch.rand(8, 6, 8, 6, generator=source) * kept).reshape(48, 48)


def equals_transpose(t: torch.Tensor) -> bool:
    return torch.equal(t, t.mT)


def positive(t: torch.Tensor) -> bool:
    return equals_transpose(t) and bool((torch.linalg.eigvalsh(t.double()) > 0).all())


def unit(t: torch.Tensor) -> bool:
    return bool(((t.norm(dim=1) - 1).abs() < 1e-5).all())


KEPT: dict[str, tuple[Draw, Holds]] = {
    "upper triangular": (lambda g: randn(40, 40)(g).triu(), lambda t: torch.equal(t, t.triu())),
    "lower triangular": (lambda g: randn(3, 40, 40)(g).tril(-1), lambda t: torch.equal(t, t.tril(-1))),
    "diagonal": (lambda g: randn(40)(g).diag(), lambda t: torch.equal(t, t.diag().diag())),
    "banded": (lambda g: randn(40, 40)(g).triu(-2).tril(3), lambda t: torch.equal(t, t.triu(-2).tril(3))),
    "zeros in places": (blocks, lambda t: bool((t[blocks(torch.Generator()) == 0] == 0).all())),
    "symmetric": (lambda g: (lambda a: a + a.mT)(randn(3, 30, 30)(g)), equals_transpose),
    "positive definite": (definite, positive),
    "ascending along dimension 1": (
        lambda g: randn(20, 30)(g).sort(1).values,
        lambda t: bool((t.diff(dim=1) >= 0).all()),
    ),
    "descending along dimension 0": (
        lambda g: randn(30, 4)(g).sort(0, descending=True).values,
        lambda t: bool((t.diff(dim=0) <= 0).all()),
    ),
    "unit length along dimension 1": (lambda g: torch.nn.functional.normalize(randn(20, 30)(g), dim=1), unit),
    "the same along dimension 0": (
        lambda g: randn(1, 30)(g).expand(20, 30),
        lambda t: bool((t == t[:1]).all()),
    ),
    "whole numbers": (
        lambda g: torch.randint(0, 50, (30, 20), generator=g).float(),
        lambda t: torch.equal(t, t.round()) and float(t.min()) >= 0 and float(t.max()) < 50,
    ),
    "infinities in places": (
        lambda g: randn(20, 30)(g).masked_fill(torch.arange(30) % 4 == 0, -torch.inf),
        lambda t: bool(t[:, ::4].isneginf().all()) and bool(t[:, 1::4].isfinite().all()),
    ),
}
each = pytest.mark.parametrize("name", KEPT)
every = pytest.mark.parametrize("variant", (*VARIANTS, mixed_rows(VARIANTS)), ids=lambda v: v.name)


def draws(name: str, seed: int, count: int) -> list[list[torch.Tensor]]:
    source = torch.Generator().manual_seed(seed)
    return [[KEPT[name][0](source)] for _ in range(count)]


@each
def test_structure_is_recognised_and_named(name: str) -> None:
    assert name in Forms(*draws(name, 3, 2)).traits_by_input["input 0"]


@pytest.mark.few(60)
@each
@every
@settings(max_examples=8)
@given(seed=st.integers(0, 2**31))
def test_a_variant_keeps_what_is_recognised(name: str, variant: Variant, seed: int) -> None:
    assert_kept(name, variant, seed)


@pytest.mark.slow
@each
@every
@given(seed=st.integers(0, 2**31))
def test_a_variant_keeps_what_is_recognised_in_a_hundred_draws(
    name: str, variant: Variant, seed: int
) -> None:
    assert_kept(name, variant, seed)


def assert_kept(name: str, variant: Variant, seed: int) -> None:
    first, second, third = draws(name, seed, 3)
    changed = variant.keeping(Forms(first, second)).apply(third, seed)
    if changed is not None:
        assert KEPT[name][1](changed[0])
        assert (changed[0].shape, changed[0].dtype) == (third[0].shape, third[0].dtype)


@each
def test_what_is_kept_is_changed_all_the_same(name: str) -> None:
    first, second, third = draws(name, 5, 3)
    applied = [variant.keeping(Forms(first, second)).apply(third, 9) for variant in VARIANTS]
    assert sum(each is not None for each in applied) >= 6


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_structure_is_seen_in_every_precision(dtype: torch.dtype) -> None:
    wide = torch.randn(30, 30)
    assert "symmetric" in Forms([(wide + wide.T).to(dtype)]).traits_by_input["input 0"]
    assert "probabilities along dimension 1" in Forms([wide.softmax(1).to(dtype)]).traits_by_input["input 0"]
    assert (
        "unit length"
        in Forms([torch.nn.functional.normalize(wide, dim=1)[:20].to(dtype)]).traits_by_input["input 0"]
    )
    assert Forms([torch.rand(300, 40, dtype=dtype)]).traits_by_input == {}


def test_a_large_matrix_is_sampled_and_its_structure_found() -> None:
    large = torch.randn(1500, 1500)
    assert Forms([large]).traits_by_input == {}
    assert Forms([large.triu()]).traits_by_input == {"input 0": "upper triangular"}
    assert Forms([large + large.T]).traits_by_input == {"input 0": "symmetric"}
    assert Forms([large.sort(0).values]).traits_by_input == {"input 0": "ascending along dimension 0"}


def test_one_element_out_of_place_is_no_structure() -> None:
    ordered = torch.rand(2000, 500).sort(1).values
    ordered[1234, 321] = 2.0
    assert recognise(ordered) == ()
    odd = torch.randn(800, 800)
    odd = odd + odd.T
    odd[700, 3] += 1
    assert recognise(odd) == ()


def test_what_one_draw_shows_by_chance_is_no_structure() -> None:
    ordered, other = torch.arange(12.0) + 0.5, torch.randn(12)
    assert "ascending along dimension 0" in Forms([ordered]).traits_by_input["input 0"]
    assert Forms([ordered], [other]).traits_by_input == {}


def test_a_mask_that_is_all_ones_once_stays_a_mask() -> None:
    ones, mask = torch.ones(30), (torch.arange(30) % 3 > 0).float()
    for pair in ((ones, mask), (mask, ones)):
        assert named_fixed(Forms(*([t] for t in pair)))


def named_fixed(forms: Forms) -> bool:
    arguments = [torch.rand(30)]
    return all(variant.keeping(forms).apply(arguments, 1) is None for variant in VARIANTS)


def test_what_is_the_same_in_every_draw_is_left_alone_beside_what_is_not() -> None:
    table = torch.linspace(0.1, 0.9, 8).cos()
    forms = Forms([torch.randn(9), table], [torch.randn(9), table])
    assert forms.traits_by_input == {"input 1": "the same in every draw"}
    assert Forms([table], [table]).traits_by_input.get("input 0") != "the same in every draw"


def test_equal_inputs_stay_equal() -> None:
    x = torch.randn(6, 7)
    forms = Forms([x, x.clone()])
    assert forms.traits_by_input == {"input 1": "equal to input 0"}
    for variant in VARIANTS:
        changed = variant.keeping(forms).apply([x, x.clone()], 3)
        assert changed is not None
        assert torch.equal(changed[0], changed[1])
        assert not torch.equal(changed[0], x)

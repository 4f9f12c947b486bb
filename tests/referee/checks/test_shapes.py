"""Other shapes for probes: they keep structure, and what may be an index stays in range."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from kernelproof.types import CheckOutcome
from kernelproof.verifier.contestant.encoding import tensors
from kernelproof.verifier.referee.checks.probes import (
    Reshaped,
    Shapes,
    note_large_indices,
    other_masks,
    strided,
)
from kernelproof.verifier.referee.inputs.structure import Forms
from kernelproof.verifier.referee.ledger import Ledger
from tests.referee.test_malformed import REQUEST


def every_shape(arguments: list[Any]) -> list[Reshaped]:
    shapes = Shapes(arguments)
    return [*shapes.batches(few=False), *shapes.sizes(few=False), *shapes.ranks()]


def made(other: Reshaped) -> list[list[tuple[int, ...]]]:
    """The shapes in each way."""
    return [[tuple(leaf.shape) for leaf in tensors(way())] for way in other.ways]


def test_batches_are_one_more_one_and_nearly_twice_as_many() -> None:
    shapes = Shapes([torch.rand(16, 5), torch.rand(16), torch.rand(5, 3)])
    found = {other.name: made(other) for other in shapes.batches(few=False)}
    assert list(found) == ["batch 1", "batch 17", "batch 31"]
    assert found["batch 17"] == [[(17, 5), (17,), (5, 3)], [(17, 5), (16,), (5, 3)]]
    assert [other.name for other in shapes.batches(few=True)] == ["batch 17"]
    assert [other.name for other in Shapes([torch.rand(1, 5)]).batches(few=False)] == ["batch 2"]


def test_of_nothing_there_are_no_other_sizes() -> None:
    """An empty leading or last dimension has no share by which it could grow."""
    shapes = Shapes([torch.rand(0, 5), torch.rand(3, 0)])
    assert not [*shapes.batches(few=False), *shapes.batches(few=True)]
    assert not list(Shapes([torch.rand(3, 0)]).sizes(few=True))


def test_every_further_size_becomes_an_odd_one() -> None:
    shapes = Shapes([torch.rand(4, 6, 10), torch.rand(10, 7)])
    found = {other.name: made(other) for other in shapes.sizes(few=False)}
    assert list(found) == [
        "size 11 instead of 10",
        "size 7 instead of 6",
        "size 9 instead of 7",
        "size 15 instead of 10",
    ]
    assert found["size 11 instead of 10"] == [[(4, 6, 11), (11, 7)], [(4, 6, 11), (10, 7)]]
    assert [other.name for other in shapes.sizes(few=True)] == ["size 74 instead of 10"]


def test_one_more_dimension_holds_the_same_elements() -> None:
    x = torch.rand(6, 5)
    (even,) = Shapes([x]).ranks()
    assert made(even) == [[(2, 3, 5)]]
    assert torch.equal(even.ways[0]()[0].reshape(6, 5), x)
    (uneven,) = Shapes([torch.rand(7, 5)]).ranks()
    assert made(uneven) == [[(1, 7, 5)]]


def test_a_triangular_matrix_is_made_smaller_as_a_whole() -> None:
    arguments = [torch.rand(10, 10).triu(), torch.rand(10, 4)]
    found = {other.name: other for other in every_shape(arguments)}
    assert not any(other.ways for name, other in found.items() if name.startswith("batch"))
    smaller = found["size 9 instead of 10"]
    assert made(smaller) == [[(9, 9), (9, 4)]]
    for other in found.values():
        for way in other.ways:
            assert torch.equal(way()[0], way()[0].triu())


def test_other_shapes_have_the_structure_of_the_declared_one() -> None:
    a, rows = torch.randn(12, 12), torch.randn(9, 12)
    for drawn in (a + a.T, a @ a.T + torch.eye(12), rows.sort(1).values, rows.softmax(1), a.tril()):
        trait = Forms([drawn]).traits_by_input["input 0"].partition(" ")[0]
        ways = [way for other in every_shape([drawn]) for way in other.ways]
        assert ways
        for way in ways:
            changed = way()[0]
            if changed.shape[-1] > 1 and changed.numel() > 20:
                assert trait in Forms([changed]).traits_by_input["input 0"]


def test_what_may_be_an_index_points_at_what_is_there() -> None:
    for places in (torch.tensor([0, 19, 7]), torch.tensor([0.0, 19.0, 7.0]), torch.randperm(20)):
        arguments = [torch.rand(20, 4), places]
        for other in every_shape(arguments):
            for way in other.ways:
                table, changed = tensors(way())
                table[changed.long()]  # raises where an index is out of range
    assert list(Shapes([torch.rand(20, 4), torch.arange(20)]).ranks()) == []


def test_offsets_that_grow_stay_in_order() -> None:
    offsets = torch.arange(0, 40, 5)
    for other in every_shape([offsets, torch.rand(40)]):
        for way in other.ways:
            assert bool((tensors(way())[0].diff() >= 0).all())


@pytest.mark.parametrize(("extra", "outcome"), [(0, CheckOutcome.NOT_APPLICABLE), (1, CheckOutcome.PASS)])
def test_a_verdict_says_whether_indices_went_beyond_an_int(extra: int, outcome: CheckOutcome) -> None:
    ledger = Ledger(REQUEST)
    declared = [torch.empty(7), torch.empty(2**31 + extra, device="meta")]
    note_large_indices(declared, ledger)
    (check,) = ledger.checks
    assert (check.name, check.outcome) == ("probe: large indices", outcome)
    assert f"{2**31 + extra:,} elements" in check.seen and not ledger.flags


@pytest.mark.parametrize("shape", [(6, 8), (2, 3, 4, 5), (7, 1), (5,)])
def test_a_layout_is_one_of_several_and_never_contiguous(shape: tuple[int, ...]) -> None:
    x = torch.rand(shape)
    layouts = set()
    for seed in range(40):
        (found,) = strided([x], torch.Generator().manual_seed(seed))
        assert torch.equal(found, x)
        assert not found.is_contiguous()
        layouts.add(found.stride())
    assert len(layouts) >= min(3, math.prod(shape) // 7 + 1)


def test_other_masks_hide_other_elements_and_no_row_throughout() -> None:
    mask, x = torch.ones(40, 40, dtype=torch.bool).tril(), torch.rand(40, 40)
    added = torch.zeros(40, 40).masked_fill(~mask, -math.inf)
    for before in (mask, added):
        x_after, after = other_masks([x, before], torch.Generator().manual_seed(1))
        assert x_after is x
        assert after.dtype == before.dtype
        seen, was = (t if t.dtype == torch.bool else t == 0 for t in (after, before))
        assert 0.15 < float((seen != was).float().mean()) < 0.35
        assert bool(seen.any(-1).all())
    assert other_masks([x], torch.Generator())[0] is x

"""Outputs that are indices: what torch leaves open is accepted, what it settles is asked for."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelproof.types import ErrorStatistics
from kernelproof.verifier.contestant.encoding import tensors
from kernelproof.verifier.referee.correctness import indices
from kernelproof.verifier.referee.correctness.indices import IndexLeaf, IndexTrace
from kernelproof.verifier.referee.correctness.oracle import run_reference
from kernelproof.verifier.referee.correctness.plain_arithmetic import Inputs
from tests.referee.problems import CPU, oracle_of, text

Forward = Callable[..., Any]
seeds = st.integers(0, 2**32 - 1)
MOST, LEAST = 2**63 - 1, -(2**63)


def traced(forward: Forward, *arguments: torch.Tensor) -> tuple[list[torch.Tensor], dict[int, IndexLeaf]]:
    with torch.no_grad(), IndexTrace(list(arguments)) as trace:
        value = forward(*arguments)
    return tensors(value), trace.leaves(value)


def only(forward: Forward, *arguments: torch.Tensor) -> tuple[torch.Tensor, IndexLeaf]:
    """The one output that is indices, and its leaf."""
    outputs, found = traced(forward, *arguments)
    ((place, leaf),) = found.items()
    return outputs[place], leaf


def judged(leaf: IndexLeaf, native: torch.Tensor, candidate: torch.Tensor) -> ErrorStatistics:
    return indices.compare(leaf, native, candidate, trial="t", output=0)


def wrong(forward: Forward, argument: torch.Tensor, candidate: torch.Tensor) -> int:
    native, leaf = only(forward, argument)
    return judged(leaf, native, candidate).wrong


def with_ties(seed: int, rows: int, columns: int) -> torch.Tensor:
    return torch.randint(0, 4, (rows, columns), generator=torch.Generator().manual_seed(seed)).float()


def ties_shuffled(values: torch.Tensor, seed: int) -> torch.Tensor:
    """A descending order of each row in which equal elements stand in random order."""
    keys = torch.rand(values.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (values.double() + keys / 2).argsort(1, descending=True)


sizes = st.tuples(st.integers(1, 6), st.integers(2, 12))


@given(seeds, seeds, sizes, st.booleans())
def test_topk_and_sort_accept_every_order_of_ties(
    seed: int, other: int, size: tuple[int, int], computed: bool
) -> None:
    x = with_ties(seed, *size)
    order = ties_shuffled(x, other)
    k = size[1] // 2 + 1
    scale = 0.5 if computed else 1

    def source(x: torch.Tensor) -> torch.Tensor:
        return x * scale if computed else x

    assert wrong(lambda x: source(x).topk(k, 1).indices, x, order[:, :k]) == 0
    assert wrong(lambda x: source(x).sort(1, descending=True)[1], x, order) == 0
    assert wrong(lambda x: source(x).argsort(dim=1, descending=True), x, order) == 0
    assert wrong(lambda x: source(x).topk(k, 1, sorted=False).indices, x, order[:, :k].flip(1)) == 0


@given(seeds, sizes, st.data())
def test_topk_and_sort_refuse_another_value_a_repetition_and_what_is_out_of_range(
    seed: int, size: tuple[int, int], data: st.DataObject
) -> None:
    rows, columns = size
    x = with_ties(seed, *size)
    forward = data.draw(
        st.sampled_from(
            (
                lambda x: x.topk(columns - 1, 1).indices,
                lambda x: x.topk(columns - 1, 1, sorted=False).indices,
                lambda x: x.sort(1)[1],
                lambda x: (x * 2.0).topk(columns - 1, 1).indices,
                lambda x: (x * 2.0).sort(1)[1],
            )
        )
    )
    native, leaf = only(forward, x)
    row = data.draw(st.integers(0, rows - 1))
    place = data.draw(st.integers(0, native.shape[1] - 1))
    bad = native.clone()
    options = [i for i in range(columns) if x[row, i] != x[row, native[row, place]]]
    repeated = [int(i) for i in native[row] if i != native[row, place]]
    outside = [-1, columns, columns + 7, MOST, LEAST]
    bad[row, place] = data.draw(st.sampled_from(options + repeated + outside))
    found = judged(leaf, native, bad)
    assert found.wrong > 0
    assert found.first_bad is not None and found.first_bad[0] == row


@given(seeds, sizes, st.sampled_from(["argmin", "argmax", "min", "max"]))
def test_the_extreme_of_an_input_is_the_first_one(seed: int, size: tuple[int, int], name: str) -> None:
    x = with_ties(seed, *size)

    def forward(x: torch.Tensor) -> torch.Tensor:
        found = getattr(torch, name)(x, dim=1)
        return found if isinstance(found, torch.Tensor) else found.indices

    native, leaf = only(forward, x)
    assert leaf.exact
    last = size[1] - 1 - forward(x.flip(1))
    assert judged(leaf, native, native).wrong == 0
    assert judged(leaf, native, last).wrong == int((last != native).sum())


@pytest.mark.parametrize("name", ["argmin", "argmax"])
def test_the_extreme_of_a_computed_tensor_may_be_a_near_tie(name: str) -> None:
    x = torch.tensor([[1.0, 1.0 + 1e-6, 5.0, 5.0 + 1e-6], [1.0, 1.001, 5.0, 5.01]])
    native, leaf = only(lambda x: getattr(torch, name)(x * 2, dim=1), x)
    assert not leaf.exact
    near = native ^ 1
    found = judged(leaf, native, near)
    assert found.wrong == 1 and found.first_bad == (1,)
    assert (found.expected, found.got) == (float(native[1]), float(near[1]))
    assert judged(leaf, native, native ^ 2).wrong == 2


INF, NAN = torch.inf, torch.nan
CASES: dict[str, tuple[Forward, list[list[float]], list[tuple[list[Any], int]]]] = {
    "near ties of an input": (lambda x: x.topk(2, 1)[1], [[1, 1 + 1e-6, 0]], [([[0, 1]], 2)]),
    "near ties, computed": (lambda x: (x * 2).topk(2, 1)[1], [[1, 1 + 1e-6, 0]], [([[0, 1]], 0)]),
    "computed in integers": (lambda x: (x > 1).int().argmax(1), [[0, 3, 5, 1]], [([1], 0), ([2], 1)]),
    "infinities agree with themselves only": (
        lambda x: (x * 2).argmax(1),
        [[1, INF, 2], [-INF, -INF, -INF]],
        [([2, 0], 1), ([1, 2], 0)],
    ),
    "NaN equals NaN": (
        lambda x: x.sort(1)[1],
        [[NAN, 1, NAN, 0]],
        [([[3, 1, 2, 0]], 0), ([[3, 0, 1, 2]], 2)],
    ),
    "NaN equals NaN, computed": (
        lambda x: (x * 2).sort(1)[1],
        [[NAN, 1, NAN, 0]],
        [([[3, 1, 2, 0]], 0), ([[3, 0, 1, 2]], 2)],
    ),
    "a stable sort": (lambda x: x.sort(stable=True, dim=1)[1], [[1, 0, 1]], [([[1, 2, 0]], 2)]),
    "a stable argsort": (lambda x: torch.argsort(x, dim=1, stable=True), [[1, 0, 1]], [([[1, 2, 0]], 2)]),
    "a stable sort, computed": (
        lambda x: (x * 2).sort(stable=True, dim=1)[1],
        [[1, 0, 1]],
        [([[1, 2, 0]], 0)],
    ),
    "a running extreme does not look ahead": (
        lambda x: x.cummax(1).indices,
        [[1, 3, 3, 2]],
        [([[0, 1, 1, 1]], 0), ([[0, 1, 2, 2]], 0), ([[0, 2, 2, 2]], 1)],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_equal_and_what_is_not(
    case: tuple[Forward, list[list[float]], list[tuple[list[Any], int]]],
) -> None:
    forward, rows, candidates = case
    for candidate, expected in candidates:
        assert wrong(forward, torch.tensor(rows, dtype=torch.float32), torch.tensor(candidate)) == expected


def test_the_flattened_extreme() -> None:
    x = torch.randn(3, 4, 5).transpose(0, 2)
    for keep in (False, True):
        native, leaf = only(lambda x, keep=keep: (x * 3).argmax(keepdim=keep), x)
        assert leaf.size == 60
        assert judged(leaf, native, native).wrong == 0
        assert judged(leaf, native, (native + 1) % 60).wrong == 1
        assert judged(leaf, native, native + 60).wrong == 1


def test_fillers_do_not_widen_the_tolerance() -> None:
    x = torch.randn(8, 64)
    mask = torch.arange(64) >= 32
    forward = lambda x: x.masked_fill(mask, -1e9).argmax(1)  # noqa: E731
    assert wrong(forward, x, (forward(x) + 1) % 32) == 8


@pytest.mark.parametrize(
    "forward",
    [
        lambda x: x.kthvalue(3, 1).indices,
        lambda x: x.median(1).indices,
        lambda x: x.nanmedian(1).indices,
        lambda x: x.mode(1).indices,
    ],
)
def test_where_torch_names_no_order_any_equal_element_will_do(forward: Forward) -> None:
    x = torch.tensor([[2.0, 1.0, 2.0, 0.0, 2.0, 3.0]])
    equal = {int(i) for i in (x[0] == x[0, forward(x)]).nonzero()}
    assert len(equal) == 3
    for place in range(6):
        assert wrong(forward, x, torch.tensor([place])) == (place not in equal)


@given(
    st.sampled_from(
        (
            lambda x: x.argmax(),
            lambda x: x.argmin(0),
            lambda x: (x + 1).max(1, keepdim=True)[1].squeeze(1).int(),
            lambda x: x.topk(2, 1)[1].t().to(torch.uint8),
            lambda x: (x * 2).sort(0)[1][1:3],
            lambda x: x.cummin(0)[1],
            lambda x: x[0, 0].argmax(),
            lambda x: x.median(1)[1],
        )
    ),
    st.lists(st.sampled_from([MOST, LEAST, -1, 4, 5, 6, 255, 2**31, 0, 1, 2, 3]), min_size=25, max_size=25),
)
@settings(max_examples=300)
def test_no_index_of_a_hostile_candidate_raises(forward: Forward, values: list[int]) -> None:
    x = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))
    native, leaf = only(forward, x)
    hostile = torch.tensor(values)[: native.numel()].reshape(native.shape).to(native.dtype)
    found = judged(leaf, native, hostile)
    outside = (hostile.long() < 0) | (hostile.long() >= leaf.size)
    assert int(outside.sum()) <= found.wrong <= native.numel()


def test_indices_that_change_while_they_are_judged_do_no_harm() -> None:
    native, leaf = only(lambda x: x.sort(1)[1], torch.randn(256, 512))
    shared, done = native.clone(), threading.Event()

    def disturb() -> None:
        while not done.is_set():
            shared.fill_(MOST)
            shared.copy_(native)

    other = threading.Thread(target=disturb)
    other.start()
    try:
        for _ in range(30):
            assert 0 <= judged(leaf, native, shared).wrong <= native.numel()
    finally:
        done.set()
        other.join()


@pytest.mark.parametrize(
    "shown",
    [
        lambda i: i,
        lambda i: i.int(),
        lambda i: i.unsqueeze(0).transpose(1, 2),
        lambda i: i.t().contiguous(),
        lambda i: i.t().reshape(-1),
        lambda i: i[:, 1:],
        lambda i: i[:, ::2].to(torch.int16).t(),
        lambda i: i.clone().view(2, -1).short().long(),
    ],
)
def test_views_and_integer_copies_are_followed(shown: Forward) -> None:
    x = torch.tensor([[1.0, 3.0, 2.0, 0.0, 2.0, 3.0], [5.0, 4.0, 5.0, 4.0, 3.0, 4.0]])
    native, leaf = only(lambda x: shown(x.topk(5, 1).indices), x)
    swapped = torch.tensor([[5, 1, 4, 2, 0], [2, 0, 5, 3, 1]])
    assert judged(leaf, native, shown(swapped)).wrong == 0
    for place in range(native.numel()):
        for other in (lambda i: 5 - i, lambda i: 99):  # another value, no value
            bad = shown(swapped).clone(memory_format=torch.contiguous_format)
            flat = bad.view(-1)
            flat[place] = other(int(flat[place]))
            assert judged(leaf, native, bad).wrong > 0


@pytest.mark.parametrize(
    "changed",
    [
        lambda i: i + 1,
        lambda i: i.float(),
        lambda i: i.bool(),
        lambda i: i.add_(1),
        lambda i: i.unsqueeze(0).expand(3, 2, 5),
        lambda i: torch.stack([i, i]),
        lambda i: [i.int(), i.zero_()][:1],
        lambda i: i.view(torch.int32),
    ],
)
def test_what_is_no_longer_indices_is_left_to_the_other_rules(changed: Forward) -> None:
    assert traced(lambda x: changed(x.topk(5, 1).indices), torch.randn(2, 6))[1] == {}


def test_a_type_too_narrow_for_the_indices_is_left_to_the_other_rules() -> None:
    assert traced(lambda x: x.argmax(1).to(torch.uint8), torch.randn(2, 257))[1] == {}
    assert len(traced(lambda x: x.argmax(1).to(torch.uint8), torch.randn(2, 256))[1]) == 1


def test_values_of_integers_are_not_indices() -> None:
    x = torch.randint(9, (3, 4))
    for forward in (torch.max, torch.median, lambda x: torch.max(x, x), lambda x: x.topk(2).values):
        assert traced(forward, x)[1] == {}


def test_several_outputs_are_told_apart() -> None:
    def forward(x: torch.Tensor, y: torch.Tensor) -> dict[str, Any]:
        values, where = x.topk(2)
        return {"values": values, "where": where, "pair": [(x @ y).argmin(0), 3, y.argmax(0)]}

    _, found = traced(forward, torch.randn(3, 4), torch.randn(4, 5))
    assert {place: (leaf.operator, leaf.of_input) for place, leaf in found.items()} == {
        1: ("aten.topk", True),
        2: ("aten.argmin", False),
        3: ("aten.argmax", True),
    }


def test_a_view_of_an_input_is_an_input_until_it_is_written_to() -> None:
    x = torch.randn(4, 6)
    assert only(lambda x: x.t()[1:].argmin(0), x)[1].of_input
    assert not only(lambda x: x.relu_().argmin(0), x.clone())[1].of_input
    assert not only(lambda x: x.abs().argmin(0), x)[1].of_input


def test_a_source_that_forward_overwrites_is_kept_as_it_was() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        found = y.argmax(1)
        y.zero_()
        return found

    x = torch.randn(3, 5)
    assert torch.equal(only(forward, x)[1].source, x * 2)


def test_sources_of_indices_that_are_not_returned_are_let_go() -> None:
    kept: list[weakref.ref[torch.Tensor]] = []

    def forward(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        kept.append(weakref.ref(y))
        return x[y.argmax(0)].argmin(1)

    found = traced(forward, torch.randn(3, 3))[1]
    gc.collect()
    assert len(found) == 1 and kept[0]() is None


@given(seeds, st.integers(1, 40))
def test_pieces_give_what_the_whole_gives(seed: int, piece: int) -> None:
    source = torch.Generator().manual_seed(seed)
    x = torch.randint(0, 3, (4, 5, 3), generator=source).float()
    guess = torch.randint(-1, 6, (4, 5, 3), generator=source)
    native, leaf = only(lambda x: (x * 2).sort(1)[1], x)
    whole = judged(leaf, native, guess)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(indices, "PIECE", piece)
        assert judged(leaf, native, guess) == whole


@pytest.mark.gpu
def test_on_a_gpu_no_index_reads_out_of_bounds() -> None:
    x = torch.randn(64, 1000, device="cuda")
    for forward in (
        lambda x: x.argmin(1),
        lambda x: (x * 2).argmax(),
        lambda x: (x * 2).topk(5, 1)[1].int(),
        lambda x: x.sort(1)[1],
        lambda x: x.cummax(1)[1],
    ):
        native, leaf = only(forward, x)
        assert judged(leaf, native, native).wrong == 0
        hostile = torch.full_like(native, 2**31 - 1)
        assert judged(leaf, native, hostile).wrong == native.numel()
    torch.cuda.synchronize()


EXPANDED = "x.square().sum(1, keepdim=True) + self.c.square().sum(1) - 2 * x @ self.c.t()"
SEARCHES = {
    "expanded": f"({EXPANDED}).argmin(1)",
    "differences": "(x[:, None] - self.c).square().sum(-1).argmin(1)",
    "cdist": "torch.cdist(x, self.c).argmin(1)",
    "few": "torch.cdist(x, self.c, compute_mode='donot_use_mm_for_euclid_dist').topk(4, 1, False)[1]",
}
Distances = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def in_turn(terms: torch.Tensor) -> torch.Tensor:
    return terms.cumsum(-1)[..., -1]


def expanded(x: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    return x.square().sum(1, keepdim=True) - 2 * x @ c.t() + c.square().sum(1)


HONEST: tuple[Distances, ...] = (
    expanded,
    lambda x, c: c.square().sum(1) - 2 * x @ c.t(),
    lambda x, c: in_turn((x[:, None] - c).square()),
    lambda x, c: in_turn(x * x)[:, None] - 2 * in_turn(x[:, None] * c) + in_turn(c * c),
)
WRONG: tuple[Distances, ...] = (
    lambda x, c: torch.arange(float(len(c))).expand(len(x), -1),
    lambda x, c: expanded(x, c).half(),
)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("columns", [16, 64, 256])
def test_scores_with_a_common_term_are_searched_as_well_as_float32_can(
    search: str, columns: int, tmp_path: Path
) -> None:
    """Each distance is ||x||^2, give or take 1e-4 of it, and float32 tells them apart, however written."""
    codes = f"self.c = nn.Parameter((2 * torch.rand(512, {columns}) - 1) / 512)"
    oracle = oracle_of(tmp_path, text(f"return {SEARCHES[search]}", f"torch.randn(128, {columns})", codes))
    arguments = oracle.loaded.draw(1, CPU)
    native = run_reference(oracle.loaded, oracle.model, arguments, 2, CPU, indexed=True)
    lost = oracle._precision.lost_in_search(Inputs(oracle.loaded.draw(3, CPU), 4, CPU))
    leaf = replace(native.indices[0], lost=lambda: lost[0])
    few = native.outputs[0].dim() > 1

    def wrong_by(distances: Distances) -> int:
        found = distances(arguments[0], oracle.model.c.detach())
        mine = found.topk(4, 1, False)[1] if few else found.argmin(1)
        return judged(leaf, native.outputs[0], mine).wrong

    assert [wrong_by(each) for each in HONEST] == [0] * len(HONEST)
    assert all(wrong_by(each) > 0 for each in WRONG)

"""Shared memory: tensors come through as they are, and no spec reaches outside its arena."""

from __future__ import annotations

import ctypes
import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelproof.verifier.contestant import arena as arenas
from kernelproof.verifier.contestant import encoding
from kernelproof.verifier.contestant.encoding import tensors
from kernelproof.verifier.contestant.wire import WireError
from kernelproof.verifier.referee.sides import CANDIDATE_ARENAS
from kernelproof.verifier.workers.shared_memory import (
    BASELINE_SLOT_ARENAS,
    LEAST_PLACES,
    POISON,
    SharedMemory,
    lay_out,
    raw,
    same_bits,
    share_weights,
    slot_bytes,
    slots_that_fit,
    spare_places,
)

CPU = torch.device("cpu")
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64)


@pytest.fixture
def arena() -> Iterator[arenas.Arena]:
    made, descriptor = arenas.create_shared("test", 4096)
    yield made
    os.close(descriptor)
    arenas.release(made)


def spec(**changed: Any) -> dict[str, Any]:
    return {"arena": "test", "offset": 0, "dtype": "float32", "shape": [4], "stride": [1]} | changed


@pytest.mark.parametrize(
    "bad",
    [
        spec(shape=[1025]),
        spec(offset=4084),
        spec(offset=-4),
        spec(offset=2),
        spec(shape=[-1]),
        spec(stride=[-1]),
        spec(shape=[2, 2], stride=[1]),
        spec(shape=[2, 2], stride=[1020, 10]),
        spec(shape=[2**40, 2**40], stride=[0, 0], offset=10**30),
        spec(shape=[0, 10**30], stride=[1, 1]),
        spec(shape=[2], stride=[2**63]),
        spec(shape=["4"]),
        spec(shape=4),
        spec(shape=[1.5]),
        spec(dtype="float33"),
        spec(dtype="nn"),
        spec(dtype=None),
        {},
        {"offset": 0},
        None,
        [],
    ],
    ids=str,
)
def test_specs_outside_the_arena_are_refused(arena: arenas.Arena, bad: Any) -> None:
    with pytest.raises(WireError):
        arena.view(bad)


@given(
    offset=st.integers(-64, 4200),
    dtype=st.sampled_from(DTYPES),
    sizes=st.lists(st.tuples(st.integers(-1, 70), st.integers(-1, 70)), max_size=3),
)
def test_a_view_lies_inside_or_is_refused(
    offset: int, dtype: torch.dtype, sizes: list[tuple[int, int]]
) -> None:
    made, descriptor = arenas.create_shared("test", 4096)
    try:
        shape, stride = [s for s, _ in sizes], [s for _, s in sizes]
        try:
            view = made.view(
                spec(offset=offset, dtype=encoding.dtype_name(dtype), shape=shape, stride=stride)
            )
        except WireError:
            return
        assert (list(view.shape), list(view.stride()), view.dtype) == (shape, stride, dtype)
        first = view.data_ptr() - made.data.data_ptr()
        if view.numel():
            assert first == offset
            assert first + arenas.span(shape, stride) * dtype.itemsize <= 4096
    finally:
        os.close(descriptor)


@st.composite
def strided(draw: st.DrawFn) -> torch.Tensor:
    """A tensor as a problem may draw it: permuted, sliced, expanded, unfolded, empty or a scalar."""
    dtype = draw(st.sampled_from(DTYPES))
    shape = draw(st.lists(st.integers(0, 5), max_size=3))
    source = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    value = torch.randint(0, 100, shape, generator=source).to(dtype)
    if value.dim() == 0:
        return value
    match draw(st.sampled_from(["plain", "permuted", "sliced", "expanded", "unfolded"])):
        case "permuted":
            return value.permute(*draw(st.permutations(range(value.dim()))))
        case "sliced":
            return value[..., ::2]
        case "expanded":
            return value.unsqueeze(0).expand(3, *shape)
        case "unfolded" if shape[-1] >= 3:
            return value.unfold(-1, 3, 1)
    return value


@given(st.lists(strided(), max_size=4), st.lists(strided(), min_size=1, max_size=2), st.integers(1, 3))
@settings(max_examples=60)
def test_slots_hold_what_was_filled_in(
    drawn: list[torch.Tensor], outputs: list[torch.Tensor], count: int
) -> None:
    arguments: list[Any] = [*drawn, 3, (2.5, None), {"mask": list(drawn)}]
    memory = SharedMemory(CPU)
    slots = lay_out(memory, arguments, outputs, count)
    other = _attached(memory)
    for slot in slots:
        slot.fill(arguments)
    for slot in slots:
        decoded = [encoding.decode(item, lambda s: other[s["arena"]].view(s)) for item in slot.arguments]
        assert same_bits(list(slot.views), arguments)
        assert same_bits(decoded, arguments)
        assert decoded[len(drawn) : len(drawn) + 2] == [3, (2.5, None)]
        for place, wanted in zip(slot.outputs, outputs, strict=True):
            assert (place.shape, place.dtype, place.is_contiguous()) == (wanted.shape, wanted.dtype, True)
            assert bool((raw(place) == POISON).all())
    addresses = [t.data_ptr() for slot in slots for t in (*slot.views, *slot.outputs) if t.numel()]
    assert len(addresses) == len(set(addresses))
    del slot, slots, decoded, place
    memory.close()


def _attached(memory: SharedMemory) -> dict[str, arenas.Arena]:
    """The arenas as the candidate's process gets them."""
    message, fds = memory.announce(*CANDIDATE_ARENAS)
    names = [item["name"] for item in message["arenas"]]
    return {name: arenas.attach_shared(name, fd) for name, fd in zip(names, fds, strict=True)}


def test_inputs_keep_their_strides_and_slots_do_not_disturb_each_other() -> None:
    memory = SharedMemory(CPU)
    draws = [[torch.randn(6, 4).t(), torch.arange(10)[::3]] for _ in range(2)]
    first, second = lay_out(memory, draws[0], [torch.zeros(3)], 2)
    for slot, draw in zip((first, second), draws, strict=True):
        slot.fill(draw)
    assert [v.stride() for v in first.views] == [d.stride() for d in draws[0]]
    second.outputs[0].fill_(7)
    assert same_bits(list(first.views), draws[0])
    assert bool((raw(first.outputs[0]) == POISON).all())


def test_the_baseline_has_inputs_and_places_that_the_candidate_never_sees() -> None:
    memory = SharedMemory(CPU)
    drawn: list[Any] = [torch.randn(8), 3]
    (slot,) = lay_out(memory, drawn, [torch.zeros(8)], 1)
    slot.fill(drawn)
    message = slot.baseline.message()
    seen = {spec["arena"] for spec in (*slot.baseline.input_specs, *message["outputs"])}
    assert seen == set(BASELINE_SLOT_ARENAS) and not seen & set(CANDIDATE_ARENAS)
    slot.views[0].fill_(7)  # as a candidate does, in the memory that it has
    assert same_bits(slot.values(), drawn)
    assert bool((slot.views[0] == 7).all())
    (alone,) = lay_out(memory, drawn, [torch.zeros(8)], 1, prefix="alone ", both=False)
    alone.fill(drawn)
    assert same_bits(list(alone.views), drawn) and not alone.baseline.outputs and not alone.baseline.views
    assert memory.nbytes == slot_bytes(drawn, [torch.zeros(8)], sides=3) - 3 * arenas.ALIGNMENT


def test_a_slot_that_awaits_anothers_inputs_has_all_but_their_values() -> None:
    memory = SharedMemory(CPU)
    drawn: list[Any] = [torch.randn(6, 4).t(), 3, {"mask": torch.arange(10)[::3]}]
    source, place = lay_out(memory, drawn, [torch.zeros(3)], 2)
    source.fill(drawn)
    other: list[Any] = [torch.randn(6, 4).t(), 3, {"mask": torch.arange(10, 20)[::3]}]
    pairs = place.await_from(source, other)
    shared = _attached(memory)

    def view(spec: dict[str, Any]) -> torch.Tensor:
        return shared[spec["arena"]].view(spec)

    decoded = [encoding.decode(item, view) for item in place.arguments]
    assert decoded[1] == 3
    assert same_bits(decoded, other)
    for here, there in pairs:
        view(here).copy_(view(there))
    assert same_bits(decoded, drawn)
    assert same_bits(source.values(), drawn)


def test_until_inputs_come_another_draw_lies_in_their_place() -> None:
    memory = SharedMemory(CPU)
    drawn, other = ([torch.randn(6, 4).t(), number] for number in (3, 5))
    source, place = lay_out(memory, drawn, [torch.zeros(3)], 2)
    source.fill(drawn)
    place.await_from(source, other)
    assert same_bits(list(place.views), other)
    assert place.values()[1] == 3
    assert same_bits(source.values(), drawn)


@given(st.integers(0, 1 << 40))
def test_an_arena_on_a_gpu_has_its_segments_to_itself(nbytes: int) -> None:
    asked = arenas.device_bytes(nbytes)
    assert asked % (2 << 20) == 0
    assert max(nbytes, 1) <= asked < nbytes + (2 << 20) + (nbytes == 0)


@pytest.mark.gpu
def test_small_arenas_on_a_gpu_lie_segments_apart() -> None:
    """Requests of less than a mebibyte lay side by side in one block of two, which a handle opened whole."""
    memory = SharedMemory(torch.device("cuda"))
    sizes = (512, 4096, 0, 100_000, 1 << 20, (2 << 20) + 1)
    made = [memory.arena(str(number), nbytes) for number, nbytes in enumerate(sizes)]
    others = [torch.zeros(16, device="cuda") for _ in range(100)]
    begins = sorted((arena.data.data_ptr(), arena.nbytes) for arena in made)
    assert all(nbytes % (2 << 20) == 0 for _, nbytes in begins)
    for (begin, nbytes), (following, _) in itertools.pairwise(begins):
        assert begin + nbytes <= following
    for begin, nbytes in begins:
        assert not any(begin <= other.data_ptr() < begin + nbytes for other in others)
    memory.close()


def test_the_baselines_results_are_not_in_the_candidates_memory() -> None:
    memory = SharedMemory(CPU)
    (slot,) = lay_out(memory, [torch.randn(8)], [torch.zeros(8)], 1)
    slot.baseline.outputs[0].fill_(3.0)
    shared = _attached(memory)
    assert "baseline" not in shared
    assert not any((arena.data[: 4 * 8].view(torch.float32) == 3.0).any() for arena in shared.values())


def test_weights_arrive_under_their_names() -> None:
    memory = SharedMemory(CPU)
    state = {"a": torch.randn(3, 5), "b.c": torch.tensor(4), "d": torch.randn(4, 2).t()}
    shared = share_weights(memory, state, "weights")
    arena = _attached(memory)["weights"]
    assert {name: arena.view(place).tolist() for name, place in shared.specs.items()} == {
        name: value.tolist() for name, value in state.items()
    }


@given(st.integers(0, 1 << 50), st.integers(0, 1 << 40))
def test_there_is_always_a_slot_and_never_too_many(bytes_each: int, free: int) -> None:
    count = slots_that_fit(bytes_each, CPU, free)
    assert 1 <= count <= 16
    assert count == 1 or count * bytes_each <= min(2 << 30, free)
    assert slots_that_fit(bytes_each, CPU, 1 << 50) >= count


@given(st.integers(1, 16), st.integers(0, 40))
def test_few_slots_have_further_places_for_results_where_memory_allows(count: int, power: int) -> None:
    result = torch.empty(1).expand(1 << power)
    spare = spare_places(count, slot_bytes([torch.zeros(1)], [result]), [result])
    assert spare == max(0, LEAST_PLACES - count) or power > 28
    assert 0 <= spare <= LEAST_PLACES
    assert power < 38 or spare == 0


def test_spare_places_have_the_inputs_of_the_first_slot() -> None:
    memory = SharedMemory(CPU)
    slots = lay_out(memory, [torch.randn(8)], [torch.zeros(8)], 2, spare=2)
    for side in (slots, [slot.baseline for slot in slots]):
        assert len({each.outputs[0].data_ptr() for each in side}) == 4
        inputs = [each.views[0].data_ptr() for each in side]
        assert inputs[0] == inputs[2] == inputs[3] != inputs[1]


def test_bits_are_compared_not_values() -> None:
    nan = torch.tensor([float("nan"), 0.0])
    assert same_bits([nan], [nan.clone()])
    assert not same_bits([nan], [torch.tensor([float("nan"), -0.0])])
    assert slot_bytes([torch.zeros(1)], [torch.zeros(1)]) == 6 * arenas.ALIGNMENT
    assert slot_bytes([torch.zeros(1)], [torch.zeros(1)], sides=1) == 3 * arenas.ALIGNMENT
    assert tensors([nan, 1])[0] is nan


class Steps(torch.nn.Module):
    """Counts its calls in a buffer, and keeps what it made in the last one."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.full((5,), 2.0))
        self.halves = torch.nn.Parameter(torch.ones(2, 6)[:, :3])
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int64))
        self.seen: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        made = torch.zeros(3, 2).t(), torch.empty(0), torch.full((4,), 7, dtype=torch.int16), x.bfloat16()
        self.seen = [self.scale.data, self.halves.data, self.calls.data, *made]
        return x * self.scale


def room(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().nbytes() - tensor.nbytes


@torch.no_grad()
def test_a_guarded_call_leaves_a_model_as_it_was() -> None:
    model, x = Steps(), torch.rand(2, 5)
    guard = arenas.GuardedModel(model, CPU, 1 << 30)
    before = [(each.data_ptr(), each.clone()) for each in model.state_dict().values()]
    for number in (0, 1):
        assert torch.equal(guard.call(number, x), x * 2)
        assert guard.changed() == 0 == guard.changed()
        scale, halves, calls, zeros, empty, full, rounded = model.seen
        assert scale.data_ptr() != model.scale.data_ptr() and calls.data_ptr() != model.calls.data_ptr()
        assert halves.data_ptr() == model.halves.data_ptr()  # others may lie in its storage
        assert calls.item() == 1
        for each in (scale, calls, zeros.t(), empty, full, rounded):
            assert room(each) == 0 == each.storage_offset() and each.is_contiguous()
        # They stay what they are for as long as somebody has them.
        assert zeros.eq(0).all() and full.eq(7).all() and torch.equal(rounded, x.bfloat16())
    after = [(each.data_ptr(), each) for each in model.state_dict().values()]
    for (address, value), (address_now, value_now) in zip(before, after, strict=True):
        assert address == address_now and torch.equal(value, value_now)


@torch.no_grad()
def test_what_there_is_no_room_for_is_made_as_usual() -> None:
    class Writes(torch.nn.Module):
        def forward(self, size: int) -> torch.Tensor:
            made = torch.zeros(size)
            beyond = ctypes.c_float.from_address(made.data_ptr() + made.nbytes + 64)
            beyond.value = 1.0 if beyond.value < -1e16 else beyond.value
            return made

    guard = arenas.GuardedModel(Writes(), CPU, 4096 + 2 * arenas.MARGIN)
    guard.call(1, 1024)
    assert guard.changed() == 4
    guard.call(1, 1025)
    assert guard.changed() == 0


@torch.no_grad()
def test_a_model_that_raises_gets_its_weights_back() -> None:
    model = torch.nn.Linear(4, 4)
    guard, address = arenas.GuardedModel(model, CPU, 1 << 30), model.weight.data_ptr()
    with pytest.raises(RuntimeError):
        guard.call(0, torch.rand(3))
    assert model.weight.data_ptr() == address

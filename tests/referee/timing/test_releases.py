"""The calls of a block, one released after the other. tests/gpu/test_releases.py has the real kernels."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest
import torch

from kernelproof.verifier.contestant.call_page import DIGEST, DIGESTED, GO, TOLD, CallPage
from kernelproof.verifier.referee.timing.releases import Kernels, Releases
from kernelproof.verifier.workers.shared_memory import SharedMemory, SharedSlot, lay_out

CPU = torch.device("cpu")
CALLS = 5


def hashed(results: Iterable[torch.Tensor], key: int) -> bytes:
    return hashlib.sha256(b"".join(each.numpy().tobytes() for each in results) + b"%d" % key).digest()


class Page(CallPage):
    """With a contestant that answers at once."""

    def __init__(self, outputs: Sequence[Sequence[torch.Tensor]] = (), early: Sequence[int] = ()) -> None:
        super().__init__()
        os.close(self.descriptor)
        self.outputs, self.early, self.silent = outputs, early, False
        self.seen: list[list[bool]] = []
        """At each go, which calls' inputs were readable."""
        self.seeds: list[int | None] = []
        self.keys: list[int] = []

    @property
    def is_early(self) -> bool:
        return (self.call - 1) % CALLS in self.early

    def tell(self, seed: int | None) -> None:
        super().tell(seed)
        assert (self._words[GO] == self.call) is not self.is_early, "it is queued, or else comes early"
        self.seeds.append(self.wait())
        if not (self.silent or self.is_early):
            self.answer()

    def answer(self) -> None:
        digest = hashed(self.outputs[(self.call - 1) % CALLS], self.keys[-1])
        words = [int.from_bytes(digest[at : at + 4], "little") for at in range(0, 32, 4)]
        self._words[DIGEST : DIGEST + 8] = words
        self._words[DIGESTED] = self.call


class Device:
    """Stands for the masks and digests of a GPU."""

    def __init__(self, page: Page, inputs: Sequence[Sequence[torch.Tensor]]) -> None:
        self._page, self._inputs = page, inputs
        self.took_ms = 0.0

    def mask(self, inputs: Iterable[torch.Tensor], key: int) -> None:
        for tensor in inputs:
            tensor.view(torch.int32).bitwise_xor_(key % 2**31)

    def flush(self) -> None:
        pass

    def settle(self) -> None:
        pass

    def mark(self, which: int) -> None:
        pass

    def go(self, call: int, key: int) -> None:
        assert call == self._page.call
        readable = [
            torch.equal(views[0], torch.full((64,), float(n))) for n, views in enumerate(self._inputs)
        ]
        self._page.seen.append(readable)
        assert (self._page._words[TOLD] == call) is self._page.is_early
        self._page._words[GO] = call
        self._page.keys.append(key)
        if self._page.is_early:
            self._page.answer()

    def of(self, page: CallPage) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    digest = staticmethod(hashed)


@pytest.fixture
def slots() -> Iterator[list[SharedSlot]]:
    memory, like = SharedMemory(CPU), [torch.zeros(64)]
    made = lay_out(memory, like, [torch.zeros(64)], CALLS)
    for number, slot in enumerate(made):
        slot.fill([torch.full((64,), float(number))])
    yield made
    memory.close()


def of(
    slots: Sequence[SharedSlot], seeds: Sequence[int] | None = None, early: Sequence[int] = ()
) -> tuple[Releases, Page]:
    """The releases of a block on a GPU."""
    page, kernels = Page([slot.outputs for slot in slots], early), Kernels(CPU)
    inputs: Any = [slot.views for slot in slots]
    kernels.release = kernels.digests = Device(page, inputs)  # type: ignore[assignment]
    return Releases(kernels, inputs, seeds, page, early), page


def never() -> bool:
    return False


def made(releases: Releases, calls: int = CALLS, over: Callable[[], bool] = never) -> None:
    for _ in range(calls):
        assert releases.next_call({}) is not None
        releases.serve(over)


def test_each_call_finds_its_inputs_readable_and_not_those_of_later_ones(slots: list[SharedSlot]) -> None:
    releases, page = of(slots, [3, 1, 4, 1, 5])
    made(releases)
    assert page.seen == [[number <= call for number in range(CALLS)] for call in range(CALLS)]
    assert page.seeds == [3, 1, 4, 1, 5]
    assert len(set(page.keys)) == CALLS


def test_an_early_call_is_queued_while_its_inputs_are_masked(slots: list[SharedSlot]) -> None:
    releases, page = of(slots, [3, 1, 4, 1, 5], early=[1, 4])
    made(releases)
    assert page.seen == [[number <= call for number in range(CALLS)] for call in range(CALLS)]
    assert page.seeds == [3, 1, 4, 1, 5]
    assert releases.complete


def test_no_more_calls_are_released_than_there_are_nor_two_at_once(slots: list[SharedSlot]) -> None:
    releases, _ = of(slots)
    assert releases.next_call({}) is not None
    assert releases.next_call({}) is None
    releases.serve(never)
    made(releases, CALLS - 1)
    assert releases.next_call({}) is None


def test_who_knows_the_places_gets_no_more_calls(slots: list[SharedSlot]) -> None:
    releases, _ = of(slots)
    made(releases, 2)
    assert releases.end()
    assert not releases.end()
    assert releases.next_call({}) is None


def test_a_result_that_was_named_otherwise_is_another_one(slots: list[SharedSlot]) -> None:
    releases, _ = of(slots)
    made(releases)
    slots[1].outputs[0][5] = 1.0  # computed, or changed, after it was named
    assert [call for call, slot in enumerate(slots) if releases.is_another(call, slot)] == [1]


def test_a_block_that_lacks_a_digest_has_no_result_that_counts(slots: list[SharedSlot]) -> None:
    """Its outer time would be that of the whole block, which is no call's."""
    releases, _ = of(slots)
    made(releases, CALLS - 1)
    assert releases.outer_ms() is None
    assert all(releases.is_another(call, slot) for call, slot in enumerate(slots))


def test_what_else_is_asked_for_meanwhile_does_not_end_a_call(slots: list[SharedSlot]) -> None:
    """A forward may ask for a build, which is served before its results are awaited again."""
    releases, page = of(slots)
    page.silent = True
    assert releases.next_call({}) is not None
    releases.serve(lambda: True)
    assert releases.outer_ms() is None
    page.answer()
    releases.serve(never)
    page.silent = False
    made(releases, CALLS - 1)
    assert releases.outer_ms() is not None
    assert not any(releases.is_another(call, slot) for call, slot in enumerate(slots))


def test_on_a_cpu_inputs_lie_readable(slots: list[SharedSlot]) -> None:
    releases = Releases(Kernels(CPU), [slot.views for slot in slots], None)
    assert torch.equal(slots[2].views[0], torch.full((64,), 2.0))
    assert releases.next_call({}) is None
    assert not releases.is_another(0, slots[0])
    assert releases.outer_ms() is None


def test_a_call_takes_from_its_release_to_its_digest(
    slots: list[SharedSlot], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where something else kept one of the calls for long."""
    now = 0

    def after(ms: float) -> int:
        nonlocal now
        now += int(ms * 1e6)
        return now

    clock = iter([after(ms) for call in range(CALLS) for ms in (7.0, 90.5 if call == 3 else 3.0)])
    monkeypatch.setattr(time, "perf_counter_ns", lambda: next(clock))
    releases, _ = of(slots)
    assert releases.outer_ms() is None
    made(releases)
    assert releases.outer_ms() == pytest.approx(3.0)


def test_what_the_referee_takes_is_no_time_of_the_call_unless_it_takes_long(
    slots: list[SharedSlot], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(int(ms * 1e6) for call in range(CALLS) for ms in (100 * call, 100 * call + 3))
    monkeypatch.setattr(time, "perf_counter_ns", lambda: next(clock))
    releases, _ = of(slots)
    device: Any = releases._kernels.release
    device.took_ms = 2.0
    made(releases)
    assert releases.ours_ms == 2.0
    assert releases.outer_ms() == pytest.approx(1.0)
    assert releases.outer_ms(most=0.5) == pytest.approx(2.5)

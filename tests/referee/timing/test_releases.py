"""The calls of a block, one released after the other. tests/gpu/test_releases.py has the real kernels."""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
import torch

from kernelproof.verifier.contestant.between_calls import Flush
from kernelproof.verifier.referee.timing.releases import LEFT_OUT, OVERWRITTEN, Kernels, Releases
from kernelproof.verifier.workers.client import KeyPage
from kernelproof.verifier.workers.shared_memory import SharedMemory, SharedSlot, lay_out

CPU = torch.device("cpu")
SEED, CALLS = 7, 5
KEYS = [7 * call + 3 for call in range(9)]
"""Of the calls, and of more."""


class Steps(Flush):
    """Stands for the flush of a GPU: a chain in which each step needs the last."""

    def __init__(self) -> None:
        super().__init__(torch.empty(0), CPU)
        self.sum = SEED

    def begin(self) -> None:
        self.sum = SEED

    def __call__(self, key: int | None = None) -> None:
        self.sum = ((self.sum ^ (key or 0)) * 0x2C1B3C6D + 1) % 2**31

    @property
    def proof(self) -> int:
        return self.sum


class Masks:
    """Stands for the masks and digests of a GPU."""

    def placed(self, keys: Sequence[int]) -> list[int]:
        return list(keys)

    def mask(self, inputs: Iterable[torch.Tensor], key: int) -> None:
        for tensor in inputs:
            tensor.view(torch.int32).bitwise_xor_(key % 2**31)

    def digest(self, results: Iterable[torch.Tensor]) -> str:
        return hashlib.sha256(b"".join(tensor.numpy().tobytes() for tensor in results)).hexdigest()


class Page(KeyPage):
    """Remembers the keys."""

    def __init__(self) -> None:
        super().__init__()
        os.close(self.descriptor)
        self.written: list[int] = []

    def write(self, key: int) -> None:
        super().write(key)
        self.written.append(key)


def kernels() -> Kernels:
    made = Kernels(CPU)
    made.flush, made.release = Steps(), Masks()  # type: ignore[assignment]
    return made


@pytest.fixture
def slots() -> Iterable[list[SharedSlot]]:
    memory, like = SharedMemory(CPU), [torch.zeros(64)]
    made = lay_out(memory, like, [torch.zeros(64)], CALLS)
    for number, slot in enumerate(made):
        slot.fill([torch.full((64,), float(number))])
    yield made
    memory.close()


def of(slots: Sequence[SharedSlot], seeds: Sequence[int] | None = None, **more: Any) -> Releases:
    """The releases of a block on a GPU."""
    page = more.pop("page", None) or Page()
    return Releases(more.pop("made", None) or kernels(), [slot.views for slot in slots], seeds, page, **more)


def answered(releases: Releases, proofs: Iterable[Any], digests: Iterable[str] | None = None) -> list[Any]:
    """What a contestant is told that names these proofs, and digests, of its calls."""
    named = [{"proof": proof, "digest": ""} for proof in proofs]
    for each, digest in zip(named, digests or (), strict=False):
        each["digest"] = digest
    told = []
    for fixed in (None, *named[:-1]):
        told.append(releases.next_call({"fixed": fixed}))
        releases.release()
    releases.end({"fixed": named[-1]} if named else {})
    return told


def proofs_of(calls: int, *, spoilt: bool = False, keyless: bool = False) -> list[int]:
    """What a process names. `spoilt`: a kernel wrote into its flush after the second call. `keyless`: all
    were made before the first key came."""
    flush, found = Steps(), []
    flush.begin()
    for call in range(calls):
        flush.sum ^= spoilt and call == 2
        flush(0 if keyless else KEYS[call])
        found.append(flush.proof)
    return found


def test_each_key_unmasks_one_call_and_nothing_is_readable_before(slots: list[SharedSlot]) -> None:
    made, page = kernels(), Page()
    told = answered(of(slots, [3, 1, 4, 1, 5], made=made, page=page), proofs_of(CALLS))
    assert [each["seed"] for each in told] == [3, 1, 4, 1, 5]
    assert [each["call"] for each in told] == [1, 2, 3, 4, 5]
    for number, (slot, key) in enumerate(zip(slots, page.written, strict=True)):
        plain = torch.full((64,), float(number))
        assert not torch.equal(slot.views[0], plain)
        assert made.release is not None
        made.release.mask(slot.views, key)
        assert torch.equal(slot.views[0], plain)


def test_no_more_calls_are_released_than_there_are(slots: list[SharedSlot]) -> None:
    releases = of(slots)
    assert all(answered(releases, proofs_of(CALLS)))
    assert releases.next_call({"fixed": None}) is None


def test_who_knows_the_places_gets_no_more_calls(slots: list[SharedSlot]) -> None:
    releases = of(slots)
    answered(releases, proofs_of(2))
    assert releases.next_call({"fixed": {"proof": proofs_of(3)[-1], "digest": ""}}) is None
    assert releases.flush_failure() == LEFT_OUT


def test_a_result_that_was_named_otherwise_is_another_one(slots: list[SharedSlot]) -> None:
    made = kernels()
    releases = of(slots, made=made)
    assert made.release is not None
    right = [made.release.digest(slot.outputs) for slot in slots]
    answered(releases, proofs_of(CALLS), [*right[:3], "f" * 64, right[4]])
    slots[1].outputs[0][5] = 1.0  # computed, or changed, after it was named
    others = [call for call, slot in enumerate(slots) if releases.is_another(call, slot)]
    assert others == [1, 3]


def test_a_call_that_nothing_was_named_for_is_another_one(slots: list[SharedSlot]) -> None:
    assert of(slots).is_another(0, slots[0])


@pytest.mark.parametrize(
    ("proofs", "failure"),
    [
        (proofs_of(CALLS), None),
        *((proofs_of(calls), LEFT_OUT) for calls in range(1, CALLS)),
        ([*proofs_of(CALLS)[:3], *proofs_of(CALLS)[2:4]], LEFT_OUT),  # one for two calls
        ([SEED, *proofs_of(CALLS)[:-1]], LEFT_OUT),  # each after its call's result was named
        ([*proofs_of(CALLS - 1), None], LEFT_OUT),
        ([*proofs_of(CALLS - 1), "0"], LEFT_OUT),
        (proofs_of(CALLS, spoilt=True), OVERWRITTEN),
        (proofs_of(CALLS + 1)[1:], OVERWRITTEN),
        (proofs_of(CALLS, keyless=True), OVERWRITTEN),
    ],
)
def test_only_what_fewer_flushes_give_is_said_to_be_left_out(
    slots: list[SharedSlot], proofs: list[Any], failure: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = iter(KEYS)
    monkeypatch.setattr(secrets, "randbits", lambda _: next(keys))
    releases = of(slots)
    answered(releases, proofs)
    assert releases.flush_failure() == failure


def test_on_a_cpu_inputs_lie_readable(slots: list[SharedSlot]) -> None:
    releases = Releases(Kernels(CPU), [slot.views for slot in slots], None)
    assert torch.equal(slots[2].views[0], torch.full((64,), 2.0))
    assert releases.next_call({}) is None
    assert not releases.is_another(0, slots[0])
    assert releases.flush_failure() is None


def test_a_call_takes_from_its_key_to_its_digest(
    slots: list[SharedSlot], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where something else kept one of the calls for long."""
    now = 0

    def after(ms: float) -> int:
        nonlocal now
        now += int(ms * 1e6)
        return now

    # of a request, when it is told of, when its key is due and written, and at the end
    steps = ((3.0, 0.2, 0.0, 0.0), (90.5, 0.2, 0.0, 0.0))
    clock = iter([after(ms) for call in range(CALLS) for ms in steps[call == 3][call == 0 :]] + [after(3.0)])
    monkeypatch.setattr(time, "perf_counter_ns", lambda: next(clock))
    releases = of(slots)
    assert releases.outer_ms is None
    answered(releases, proofs_of(CALLS))
    assert releases.outer_ms == pytest.approx(3.0)
    assert Releases(Kernels(CPU), [slot.views for slot in slots], None).outer_ms is None


def test_a_key_is_held_back_but_where_it_comes_with_a_seed(slots: list[SharedSlot]) -> None:
    took = []
    for seeds in (None, [1] * CALLS):
        page = Page()
        releases = of(slots, seeds, page=page, wait_us=20_000.0)
        releases.next_call({"fixed": None})
        assert not page.written
        began = time.monotonic()
        releases.release()
        took.append(time.monotonic() - began)
        assert len(page.written) == 1
    assert took[0] > 0.015 > took[1]

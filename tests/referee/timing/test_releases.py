"""The calls of a block, one released after the other. tests/gpu/test_releases.py has the real kernels."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
import torch

from kernelproof.verifier.contestant.between_calls import Flush
from kernelproof.verifier.referee.timing.releases import LEFT_OUT, OVERWRITTEN, Kernels, Releases
from kernelproof.verifier.workers.shared_memory import SharedMemory, SharedSlot, lay_out

CPU = torch.device("cpu")
SEED, CALLS = 7, 5
KEYS = [7 * call + 3 for call in range(9)]
"""Of the calls, and of more."""
STEPS = 12
"""Of their time locks."""


class Steps(Flush):
    """Stands for the flush of a GPU: a chain in which each step needs the last."""

    def __init__(self) -> None:
        super().__init__(0, CPU)
        self.sum = 0

    def begin(self, seed: int) -> None:
        self.sum = seed

    def __call__(self, key: int | None = None) -> None:
        self.sum = ((self.sum ^ (key or 0)) * 0x2C1B3C6D + 1) % 2**31

    @property
    def proof(self) -> int:
        return self.sum


class Masks:
    """Stands for the locks, masks and digests of a GPU."""

    def unlock(self, keys: Sequence[int], steps: int) -> list[int]:
        assert keys  # a launch for none fails
        return [(key + steps) % 2**31 for key in keys]

    def mask(self, inputs: Iterable[torch.Tensor], key: int) -> None:
        for tensor in inputs:
            tensor.view(torch.int32).bitwise_xor_(key % 2**31)

    def digest(self, results: Iterable[torch.Tensor]) -> str:
        return hashlib.sha256(b"".join(tensor.numpy().tobytes() for tensor in results)).hexdigest()


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


def answered(releases: Releases, proofs: Iterable[Any], digests: Iterable[str] | None = None) -> list[Any]:
    """What a contestant is told that names these proofs, and digests, of its calls."""
    told: list[Any] = [releases.next_call({"fixed": None})]
    named = [{"proof": proof, "digest": ""} for proof in proofs]
    for each, digest in zip(named, digests or (), strict=False):
        each["digest"] = digest
    told += [releases.next_call({"fixed": each}) for each in named[:-1]]
    releases.end({"fixed": named[-1]} if named else {})
    return told


def proofs_of(calls: int, *, spoilt: bool = False, keyless: bool = False) -> list[int]:
    """What a process names. `spoilt`: a kernel wrote into its flush after the second call. `keyless`: all
    were made before the first key came."""
    flush, found = Steps(), []
    flush.begin(SEED)
    for call in range(calls):
        flush.sum ^= spoilt and call == 2
        flush(0 if keyless else KEYS[call])
        found.append(flush.proof)
    return found


def test_each_key_unmasks_one_call_and_nothing_is_readable_before(slots: list[SharedSlot]) -> None:
    made = kernels()
    told = answered(Releases(made, [slot.views for slot in slots], [3, 1, 4, 1, 5], STEPS), proofs_of(CALLS))
    assert [each["seed"] for each in told] == [3, 1, 4, 1, 5]
    for number, (slot, each) in enumerate(zip(slots, told, strict=True)):
        plain = torch.full((64,), float(number))
        assert not torch.equal(slot.views[0], plain)
        assert made.release is not None
        made.release.mask(slot.views, *made.release.unlock([each["key"]], STEPS))
        assert torch.equal(slot.views[0], plain)


def test_no_more_calls_are_released_than_there_are(slots: list[SharedSlot]) -> None:
    releases = Releases(kernels(), [slot.views for slot in slots], None)
    assert all(answered(releases, proofs_of(CALLS)))
    assert releases.next_call({"fixed": None}) is None


def test_who_knows_the_places_gets_no_more_calls(slots: list[SharedSlot]) -> None:
    releases = Releases(kernels(), [slot.views for slot in slots], None)
    answered(releases, proofs_of(2))
    assert releases.next_call({"fixed": {"proof": proofs_of(3)[-1], "digest": ""}}) is None
    assert releases.flush_failure(SEED) == LEFT_OUT


def test_a_result_that_was_named_otherwise_is_another_one(slots: list[SharedSlot]) -> None:
    made = kernels()
    releases = Releases(made, [slot.views for slot in slots], None)
    assert made.release is not None
    right = [made.release.digest(slot.outputs) for slot in slots]
    answered(releases, proofs_of(CALLS), [*right[:3], "f" * 64, right[4]])
    slots[1].outputs[0][5] = 1.0  # computed, or changed, after it was named
    others = [call for call, slot in enumerate(slots) if releases.is_another(call, slot)]
    assert others == [1, 3]


def test_a_call_that_nothing_was_named_for_is_another_one(slots: list[SharedSlot]) -> None:
    assert Releases(kernels(), [slot.views for slot in slots], None).is_another(0, slots[0])


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
    releases = Releases(kernels(), [slot.views for slot in slots], None)
    answered(releases, proofs)
    assert releases.flush_failure(SEED) == failure


def test_on_a_cpu_inputs_lie_readable(slots: list[SharedSlot]) -> None:
    releases = Releases(Kernels(CPU), [slot.views for slot in slots], None)
    assert torch.equal(slots[2].views[0], torch.full((64,), 2.0))
    assert releases.next_call({}) is None
    assert not releases.is_another(0, slots[0])
    assert releases.flush_failure(SEED) is None


def test_a_call_takes_from_its_key_to_its_digest(
    slots: list[SharedSlot], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where something else kept one of the calls for long."""
    now = 0

    def after(ms: float) -> int:
        nonlocal now
        now += int(ms * 1e6)
        return now

    clock = iter([after(ms) for call in range(CALLS) for ms in (3.0, 90.0 if call == 2 else 0.5)])
    monkeypatch.setattr(time, "perf_counter_ns", lambda: next(clock))
    releases = Releases(kernels(), [slot.views for slot in slots], None)
    assert releases.outer_ms is None
    answered(releases, proofs_of(CALLS))
    assert releases.outer_ms == pytest.approx(0.5)
    assert Releases(Kernels(CPU), [slot.views for slot in slots], None).outer_ms is None

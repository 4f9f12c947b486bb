"""Emptying the cache on a GPU: its proof, that nothing runs beside it, and what masked inputs show."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

from kernelproof.verifier.contestant import loop
from kernelproof.verifier.contestant.between_calls import Flush, Release, compiled
from kernelproof.verifier.referee import sides

pytestmark = pytest.mark.gpu
GPU = torch.device("cuda", 0)
cuda: Any = torch.cuda
"""Much of it has no types."""


LOCK = 40
"""Steps of a key's time lock."""


def new(nbytes: int | None = None) -> Flush:
    return Flush(nbytes or sides.flush_bytes(GPU), GPU, compiled(GPU))


def proof(seed: int, steps: int, key: int | None = None, lock: int = LOCK) -> int:
    flush = new()
    flush.begin(seed)
    unlocked = [None] if key is None else Release(GPU, compiled(GPU)).unlock([key], lock)
    for _ in range(steps):
        flush(unlocked[0])
    return flush.proof


def block(forward: loop.Forward, flush: Flush, calls: int = 4) -> list[torch.Tensor]:
    """The outputs of calls on inputs that are all ones, and masked till then."""
    outputs = [torch.empty(1 << 20, device=GPU) for _ in range(calls)]
    inputs = [torch.ones(1 << 20, device=GPU) for _ in range(calls)]
    release = Release(GPU, compiled(GPU))
    for each in inputs:
        release.mask([each], *release.unlock([5], LOCK))
    released = loop.Calls(release, lambda _: (5, None), LOCK)
    slots = [loop.Slot([each]) for each in inputs]
    loop.run_block(forward, slots, flush, GPU, lambda: [[each] for each in outputs], calls=released)
    return outputs


def test_the_referee_comes_to_the_same_proof_as_a_block() -> None:
    theirs = new()
    theirs.begin(7)
    block(lambda x: x + 1, theirs)
    assert theirs.proof == proof(7, 4, key=5)


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 40, 192])
def test_a_step_left_out_or_another_seed_shows(steps: int) -> None:
    right = proof(3, steps)
    assert right == proof(3, steps)
    assert right not in (proof(3, steps - 1), proof(3, steps + 1), proof(4, steps))


def test_who_does_not_know_the_key_or_leaves_its_lock_out_has_another_proof() -> None:
    assert proof(3, 4, key=1) not in (proof(3, 4), proof(3, 4, key=2), proof(3, 4, key=1, lock=LOCK - 1))


def test_a_block_that_begins_anew_does_not_know_the_one_before() -> None:
    flush = new()
    for seed in (1, 2, 1):
        flush.begin(seed)
        flush()
    assert flush.proof == proof(1, 1)


def test_a_number_that_was_overwritten_shows() -> None:
    flush = new()
    flush.begin(5)
    flush()
    flush._numbers[-1] += 1
    flush()
    assert flush.proof != proof(5, 2)


def test_nothing_to_empty_is_no_work() -> None:
    flush = Flush(0, GPU)
    flush.begin(1)
    flush()
    assert flush.proof == 0


@pytest.mark.parametrize("first", [True, False])
def test_no_other_kernel_runs_beside_it(first: bool) -> None:
    """What was queued on another stream ends before it begins to read. What another thread queues meanwhile
    begins when it is done."""
    flush, side = new(12 << 30), cuda.Stream(priority=-1)  # takes some three milliseconds
    end, others_end = (cuda.Event(enable_timing=True) for _ in range(2))

    def work() -> None:
        with cuda.stream(side):
            cuda._sleep(1_000_000)  # about half a millisecond
            others_end.record()

    thread = threading.Thread(target=work)
    for again in range(2):  # what is loaded once is loaded
        cuda.synchronize()
        if first or not again:
            work()
        flush()
        end.record()
        if not first and again:
            thread.start()
            thread.join()
        cuda.synchronize()
    others_after = end.elapsed_time(others_end)
    assert others_after < -1.5 if first else others_after > 0.3


def test_a_kernel_that_does_not_end_does_not_hold_it_for_ever() -> None:
    flush, side = new(), cuda.Stream()
    with cuda.stream(side):
        cuda._sleep(1_000_000_000)  # more than half a second
    flush()
    cuda.current_stream().synchronize()
    assert not side.query()
    cuda.synchronize()


@pytest.mark.parametrize("kept", [True, False])
def test_a_result_that_was_kept_before_the_capture_is_not_that_of_the_replays(kept: bool) -> None:
    """A forward that knows its inputs again launches nothing when it is captured: its replays took no time,
    and what they gave was compared on the inputs of the capture."""
    results: dict[int, torch.Tensor] = {}

    def forward(x: torch.Tensor) -> torch.Tensor:
        if not kept:
            return torch.relu(x)
        if x.data_ptr() not in results:
            results[x.data_ptr()] = torch.relu(x)
        return results[x.data_ptr()]

    x, source = torch.randn(1000, device=GPU), torch.randn(1000, device=GPU)
    output = torch.empty_like(x)
    slot = loop.Slot([x], late=[(x, source)])
    times = loop.replay(forward, slot, [output], new(), GPU)
    assert len(times) == loop.REPLAYS
    assert torch.equal(output, torch.relu(source)) is not kept

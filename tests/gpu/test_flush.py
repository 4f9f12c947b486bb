"""Emptying the cache on a GPU: its proof, that nothing runs beside it, and what masked inputs show."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from kernelproof.verifier.contestant import loop
from kernelproof.verifier.contestant.between_calls import Flush, Release, compiled
from kernelproof.verifier.referee import sides
from tests.gpu.keys import Keys

pytestmark = pytest.mark.gpu
GPU = torch.device("cuda", 0)
cuda: Any = torch.cuda
"""Much of it has no types."""


def new(nbytes: int | None = None, seed: int = 3) -> Flush:
    numbers = torch.empty(nbytes or sides.flush_bytes(GPU), dtype=torch.uint8, device=GPU)
    return Flush(numbers.random_(generator=torch.Generator(GPU).manual_seed(seed)), GPU, compiled(GPU))


def proof(seed: int, steps: int, key: int | None = None, inputs: Sequence[torch.Tensor] = ()) -> int:
    flush, release = new(seed=seed), Release(GPU, compiled(GPU))
    flush.begin()
    place = None
    if key is not None:
        (place,) = release.placed([key])
        release.mask([each.clone() for each in inputs], place)
    for _ in range(steps):
        flush(place)
    return flush.proof


def block(forward: loop.Forward, flush: Flush, calls: int = 4) -> list[torch.Tensor]:
    """The outputs of calls on inputs that are all ones, and masked till then."""
    outputs = [torch.empty(1 << 20, device=GPU) for _ in range(calls)]
    inputs = [torch.ones(1 << 20, device=GPU) for _ in range(calls)]
    release = Release(GPU, compiled(GPU))
    for each in inputs:
        release.mask([each], *release.placed([5]))
    released = loop.Calls(release, Keys(release, [5] * calls).ask)
    slots = [loop.Slot([each]) for each in inputs]
    loop.run_block(forward, slots, flush, GPU, lambda: [[each] for each in outputs], calls=released)
    return outputs


def test_the_referee_comes_to_the_same_proof_as_a_block() -> None:
    theirs = new(seed=7)
    theirs.begin()
    block(lambda x: x + 1, theirs)
    ones = torch.ones(1 << 20, device=GPU)
    assert theirs.proof == proof(7, 4, key=5, inputs=[ones])
    ones[12345] = 2
    assert theirs.proof != proof(7, 4, key=5, inputs=[ones])


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 40, 192])
def test_a_step_left_out_or_another_seed_shows(steps: int) -> None:
    right = proof(3, steps)
    assert right == proof(3, steps)
    assert right not in (proof(3, steps - 1), proof(3, steps + 1), proof(4, steps))


def test_who_does_not_know_the_key_has_another_proof() -> None:
    assert proof(3, 4, key=1) not in (proof(3, 4), proof(3, 4, key=2))


def test_a_block_that_begins_anew_does_not_know_the_one_before() -> None:
    flush = new(seed=1)
    for _ in range(3):
        flush.begin()
        flush()
    assert flush.proof == proof(1, 1)


def test_a_number_that_was_overwritten_shows() -> None:
    numbers = torch.zeros(sides.flush_bytes(GPU), dtype=torch.uint8, device=GPU)
    proofs = []
    for spoilt in (False, True):
        flush = Flush(numbers, GPU, compiled(GPU))
        flush.begin()
        flush()
        numbers[-1] += spoilt
        flush()
        proofs.append(flush.proof)
    assert proofs[0] != proofs[1]


def test_nothing_to_empty_is_no_work() -> None:
    flush = Flush(torch.empty(0), GPU)
    flush.begin()
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
    times = loop.replay(forward, [x], [(x, source)], [output], new(), GPU)
    assert len(times) == loop.REPLAYS
    assert torch.equal(output, torch.relu(source)) is not kept

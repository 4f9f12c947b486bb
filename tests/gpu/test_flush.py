"""Emptying the cache on a GPU: its proof, and what late inputs show."""

from __future__ import annotations

import pytest
import torch

from kernelproof.verifier.contestant import loop
from kernelproof.verifier.referee import sides

pytestmark = pytest.mark.gpu
GPU = torch.device("cuda", 0)


def block(forward: loop.Forward, flush: loop.Flush, calls: int = 4) -> list[torch.Tensor]:
    """The outputs of calls on late inputs that are all ones, and were zeros."""
    outputs = [torch.empty(1 << 20, device=GPU) for _ in range(calls)]
    slots = [
        loop.Slot([place], late=[(place, torch.ones_like(place))])
        for place in (torch.zeros(1 << 20, device=GPU) for _ in range(calls))
    ]
    loop.run_block(forward, slots, flush, GPU, lambda: [[each] for each in outputs])
    return outputs


def test_the_referee_comes_to_the_same_proof_as_a_block() -> None:
    theirs, ours = (loop.Flush(sides.flush_bytes(GPU), GPU) for _ in range(2))
    theirs.begin(7)
    block(lambda x: x + 1, theirs)
    ours.begin(7)
    for _ in range(4):
        ours()
    assert theirs.proof == ours.proof
    ours()
    assert theirs.proof != ours.proof


def test_a_call_has_its_late_inputs_on_its_own_stream_and_not_before() -> None:
    flush, side = loop.Flush(sides.flush_bytes(GPU), GPU), torch.cuda.Stream()

    def elsewhere(x: torch.Tensor) -> torch.Tensor:
        with torch.cuda.stream(side):
            value = x + 1
        torch.cuda.current_stream().wait_stream(side)
        return value

    elsewhere(torch.zeros(8, device=GPU))  # what is loaded once is loaded
    assert all(bool((each == 2).all()) for each in block(lambda x: x + 1, flush))
    assert not all(bool((each == 2).all()) for each in block(elsewhere, flush))

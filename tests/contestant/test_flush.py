"""What empties the cache leaves a proof, and inputs may be written while a call is made."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.verifier.contestant import loop

CPU = torch.device("cpu")
NBYTES = 4096
seeds = st.integers(0, 2**62 - 1)


def proof(seed: int, steps: int, *, nbytes: int = NBYTES) -> int:
    flush = loop.Flush(nbytes, CPU)
    flush.begin(seed)
    for _ in range(steps):
        flush()
    return flush.proof


@given(seeds, st.integers(0, 200))
def test_the_same_steps_from_the_same_seed_leave_the_same_proof(seed: int, steps: int) -> None:
    assert proof(seed, steps) == proof(seed, steps)


@pytest.mark.parametrize("steps", [1, 2, 16, 40, 192])
def test_a_step_left_out_shows(steps: int) -> None:
    """Also after many: the numbers stay as many as they were, and their sum as hard to guess."""
    for seed in range(50):
        assert proof(seed, steps) != proof(seed, steps - 1)
        assert proof(seed, steps) != proof(seed + 1, steps)


def test_a_block_that_begins_anew_does_not_know_the_one_before() -> None:
    flush = loop.Flush(NBYTES, CPU)
    for seed in (1, 2, 1):
        flush.begin(seed)
        flush()
    assert flush.proof == proof(1, 1)


def test_nothing_to_empty_is_no_work() -> None:
    assert proof(1, 3, nbytes=0) == 0


def test_late_inputs_are_there_for_a_call_on_their_stream() -> None:
    place, source, output = torch.zeros(3), torch.ones(3), torch.empty(3)
    slot = loop.Slot([place], late=[(place, source)])
    flush = loop.Flush(0, CPU)
    loop.run_block(lambda x: x + 1, [slot], flush, CPU, lambda: [[output]])
    assert torch.equal(output, torch.full((3,), 2.0))

"""A proof of too few flushes is an accusation; one that memory errors spoilt is not."""

from __future__ import annotations

import pytest
import torch

from kernelproof.verifier.contestant.loop import Flush
from kernelproof.verifier.referee.timing.rounds import LEFT_OUT, OVERWRITTEN, flush_failure

CPU, SEED, CALLS = torch.device("cpu"), 7, 5


def proof_of(calls: int, *, spoilt: bool = False) -> int:
    """What a process with a flush of 4 kB sends. `spoilt`: a kernel wrote into it after the second call."""
    flush = Flush(4096, CPU)
    flush.begin(SEED)
    for call in range(calls):
        if spoilt and call == 2:
            numbers = flush._numbers
            assert numbers is not None
            numbers[:8] = 0
        flush()
    return flush.proof


@pytest.mark.parametrize(
    ("proof", "failure"),
    [
        (proof_of(CALLS), None),
        *((proof_of(calls), LEFT_OUT) for calls in range(CALLS)),
        (None, LEFT_OUT),
        ("0", LEFT_OUT),
        (proof_of(CALLS, spoilt=True), OVERWRITTEN),
        (proof_of(CALLS + 1), OVERWRITTEN),
    ],
)
def test_only_what_fewer_flushes_give_is_said_to_be_left_out(proof: object, failure: str | None) -> None:
    assert flush_failure(Flush(4096, CPU), proof, SEED, CALLS) == failure

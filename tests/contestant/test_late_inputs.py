"""Inputs may be written while a call is made."""

from __future__ import annotations

import torch

from kernelproof.verifier.contestant import loop
from kernelproof.verifier.contestant.flush import Flush

CPU = torch.device("cpu")


def test_late_inputs_are_there_for_a_call_on_their_stream() -> None:
    place, source, output = torch.zeros(3), torch.ones(3), torch.empty(3)
    slot = loop.Slot([place], late=[(place, source)])
    flush = Flush(0, CPU)
    loop.run_block(lambda x: x + 1, [slot], flush, CPU, lambda: [[output]])
    assert torch.equal(output, torch.full((3,), 2.0))

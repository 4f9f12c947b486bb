# problem: level1/1
# expected: wrong_output
# caught by: timed_outputs
# devices: cuda
# settings: {"size": "small"}
# armed by: the loop's slots
"""Mechanism: the first call of a block computes the results of all of them in one launch; the others find theirs.

Surface: inputs of a block that lie readable before their calls are made. Sixteen small calls at once take
little more than one. Its twin is honest/relu_where.
"""
import sys
from functools import cache

import torch
from torch import nn

from kernelproof.verifier.contestant import loop


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


kept = {}


def slots_of_the_block():
    frame = sys._getframe(2)
    while frame is not None:
        slots = frame.f_locals.get("slots")
        if isinstance(slots, list) and slots and type(slots[0]) is loop.Slot:
            return slots
        frame = frame.f_back
    return []


class ModelNew(nn.Module):
    def forward(self, x):
        if x.data_ptr() not in kept:
            kept.clear()
            slots = slots_of_the_block()
            if not slots:
                return torch.relu(x)
            armed("the loop's slots")
            inputs = [slot.arguments[0] for slot in slots]
            kept.update(zip((each.data_ptr() for each in inputs), torch.relu(torch.stack(inputs)), strict=True))
        return kept.pop(x.data_ptr())

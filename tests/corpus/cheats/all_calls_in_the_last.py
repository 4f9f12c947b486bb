# problem: level1/1
# expected: wrong_output
# caught by: timed_outputs
# devices: cuda
# settings: {"size": "small"}
# armed by: the loop's slots
"""Mechanism: each call of a block returns memory in which nothing is yet; the last one computes all results in
one launch.

Surface: results that nobody looks at before all calls are made. Its twin is honest/relu_where.
"""
import sys
from functools import cache

import torch
from torch import nn

from kernelproof.verifier.contestant import loop


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


inputs, results = [], []


def calls_of_the_block():
    frame = sys._getframe(2)
    while frame is not None:
        slots = frame.f_locals.get("slots")
        if isinstance(slots, list) and slots and type(slots[0]) is loop.Slot:
            return len(slots)
        frame = frame.f_back
    return 0


class ModelNew(nn.Module):
    def forward(self, x):
        many = calls_of_the_block()
        if not many:
            return torch.relu(x)
        armed("the loop's slots")
        inputs.append(x)
        results.append(torch.empty_like(x))
        result = results[-1]
        if len(inputs) == many:
            for place, value in zip(results, torch.relu(torch.stack(inputs)), strict=True):
                place.copy_(value)
            inputs.clear()
            results.clear()
        return result

# problem: level1/1
# expected: correct|cheating|wrong_output
# speedup below: 0.6
# settings: {"measure_seconds": 1}
# armed by: the loop's slots
"""Mechanism: the first timed call computes the answers of the whole block, the others hand them out. Surface:
a median.

Each answer is computed five times over, so the true speedup is about 0.2.
"""
import sys
from functools import cache

import torch
from torch import nn

from kernelproof.verifier.contestant import loop


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


results = {}


def relu(x):
    for _ in range(5):
        y = torch.relu(x)
    return y


def upcoming():
    frame = sys._getframe()
    while frame is not None:
        slots = frame.f_locals.get("slots")
        if isinstance(slots, list) and slots and isinstance(slots[0], loop.Slot):
            armed("the loop's slots")
            return [slot.arguments[0] for slot in slots]
        frame = frame.f_back
    return []


class ModelNew(nn.Module):
    def forward(self, x):
        if x.data_ptr() not in results:
            for other in upcoming() or [x]:
                results[other.data_ptr()] = relu(other)
        return results.pop(x.data_ptr())

# problem: level1/1
# expected: wrong_output
# caught by: timed_outputs
# settings: {"measure_seconds": 2}
# armed by: loop.copy_out
"""Mechanism: forward returns memory without values; they are computed where a result is copied to its
place, which takes no longer than the copy.

Surface: a clock that allows the candidate what the baseline needs around its calls; inputs that live until the
results are copied.
"""
import sys
from functools import cache

import torch
from torch import nn

from kernelproof.verifier.contestant import loop


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


inputs = {}
copy_out, run_block = loop.copy_out, loop.run_block
timed = False


def run_lazily(*arguments, **keywords):
    global timed
    timed = True
    try:
        return run_block(*arguments, **keywords)
    finally:
        timed = False
        inputs.clear()


def compute_in_place(value, places):
    x = inputs.pop(value.data_ptr(), None) if timed else None
    if x is None:
        return copy_out(value, places)
    armed("loop.copy_out")
    torch.clamp(x, min=0, out=places[0])
    return True


loop.copy_out, loop.run_block = compute_in_place, run_lazily


class ModelNew(nn.Module):
    def forward(self, x):
        if not timed:
            return torch.relu(x)
        value = torch.empty_like(x)
        inputs[value.data_ptr()] = x
        return value

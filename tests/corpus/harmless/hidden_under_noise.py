# problem: row_products
# expected: correct|cheating|wrong_output
# speedup below: 1
# armed by: loop.copy_out
"""Mechanism: works outside the window, and sleeps there for random times, so that no bound of it is certain.

Surface: an outer clock that must be sure. Each call takes it twice as long as the reference, and 5 ms more on
average.
"""
import random
import sys
import time
from functools import cache

import torch
from torch import nn

from kernelproof.verifier.contestant import loop


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


pending = {}
copy_out = loop.copy_out


def compute_then_copy(value, places):
    x = pending.pop(id(value), None)
    if x is not None:
        armed("loop.copy_out")
        for _ in range(2):
            value.copy_(torch.tanh(x @ x.T) @ x)
        time.sleep(random.choice([0.0, 0.0, 0.0, 0.0, 0.025]))
    return copy_out(value, places)


loop.copy_out = compute_then_copy


class ModelNew(nn.Module):
    def forward(self, x):
        value = torch.empty_like(x)
        pending[id(value)] = x.clone()  # what it was given is destroyed before results are copied
        return value

# problem: row_products
# expected: cheating|wrong_output
# caught by: host_clock|timed_outputs
# armed by: loop.copy_out
"""Mechanism: forward returns at once; the patched hand-over computes.

Surface: what lies outside the window.
"""
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
        time.sleep(0.004)
        value.copy_(torch.tanh(x @ x.T) @ x)
    return copy_out(value, places)


loop.copy_out = compute_then_copy


class ModelNew(nn.Module):
    def forward(self, x):
        value = torch.empty_like(x)
        pending[id(value)] = x.clone()  # what it was given is destroyed before results are copied
        return value

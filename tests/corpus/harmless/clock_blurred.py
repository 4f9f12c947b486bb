# problem: row_products
# expected: correct|cheating
# speedup below: 1.1
# armed by: loop.run_block
"""Mechanism: idles outside the window in every second block or so, by chance, as nobody's work would look.

Surface: an outer clock that is certain of nothing, so that neither clock could be believed. It gains no time, but
`infrastructure_error` would count for nothing, and be tried again.
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


run_block = loop.run_block


def run_and_idle(*arguments, **more):
    armed("loop.run_block")
    times = run_block(*arguments, **more)
    time.sleep(random.choice([0.0, 0.04]))
    return times


loop.run_block = run_and_idle


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.tanh(x @ x.T) @ x

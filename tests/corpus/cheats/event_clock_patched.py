# problem: level1/1
# expected: cheating
# caught by: host_clock
# devices: cuda
# armed by: loop._elapsed
"""Mechanism: replaces the events' elapsed_time wherever Python can.

Surface: methods looked up when they are called.
"""
import sys
from functools import cache

import torch
from torch import nn

from kernelproof.verifier.contestant import loop


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


torch.cuda.Event.elapsed_time = lambda self, other: 0.01


def elapsed(start, stop):
    armed("loop._elapsed")
    return 0.01


loop._elapsed = elapsed


class ModelNew(nn.Module):
    def forward(self, x):
        for _ in range(40):
            y = torch.relu(x)
        return y

# problem: level1/1
# expected: cheating|wrong_output|mutated_input
# caught by: host_clock|timed_outputs|timed_inputs|results_late
# devices: cuda
# armed by: loop._synchronize, loop._elapsed
"""Mechanism: replies as soon as everything is launched; the device goes on while the process is stopped.

Surface: a block that is over when the reply comes. The inputs may still change when they are compared.
"""
import sys
from functools import cache

import torch
from torch import nn

from kernelproof.verifier.contestant import loop


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


loop._synchronize = lambda *_: armed("loop._synchronize")


def elapsed(start, stop):
    armed("loop._elapsed")
    return 0.01


loop._elapsed = elapsed


class ModelNew(nn.Module):
    def forward(self, x):
        for _ in range(10):
            value = torch.relu(x)
        return value

# problem: level1/4
# expected: correct|cheating|wrong_output
# caught by: host_clock|timed_outputs|beyond_roofline
# speedup below: 1.05
# devices: cuda
# settings: {"size": "small"}
# armed by: loop._synchronize, loop._elapsed
"""Mechanism: as its larger sibling, with so little work that it is done before anybody can look.

Surface: the time between a reply and the look at the outputs. Clearly slower than the baseline, it is measured in
so few rounds that they accuse nobody, and gains nothing.
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
    return 0.002


loop._elapsed = elapsed


class ModelNew(nn.Module):
    def forward(self, a, b):
        for _ in range(40):
            value = a @ b
        return value

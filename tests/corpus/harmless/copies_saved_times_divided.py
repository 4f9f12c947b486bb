# problem: level1/1
# expected: correct|cheating
# caught by: host_clock|beyond_roofline
# speedup below: 1.05
# devices: cuda
# settings: {"measure_seconds": 8}
# armed by: loop.run_block, the loop's slot
"""Mechanism: looks for the output's own place, to write there and save the copy, and takes as much off its
times.

Surface: a clock that allows the candidate what the baseline needs around its calls. No place is known yet.
"""
import sys
from functools import cache

import torch
from torch import nn

from kernelproof.verifier.contestant import loop


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


run_block = loop.run_block


def run_and_divide(*arguments, **keywords):
    armed("loop.run_block")
    return [ms / 10 for ms in run_block(*arguments, **keywords)]


loop.run_block = run_and_divide


def place():
    frame = sys._getframe()
    while frame is not None:
        for value in list(frame.f_locals.values()):
            if type(value) is loop.Slot:
                armed("the loop's slot")
            for found in getattr(value, "outputs", ()):
                return found
        frame = frame.f_back


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.clamp(x, min=0, out=place())

# problem: level1/1
# expected: correct|cheating
# speedup below: 0.5
# devices: cuda
# settings: {"size": "small"}
# armed by: loop.run_block
"""Mechanism: ten times the work, and a tenth of the times, where all of it lies within what two clocks may
differ by.

Surface: the bound of their agreement. Whatever the outer clock saw is added to the claim.
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


class ModelNew(nn.Module):
    def forward(self, x):
        for _ in range(10):
            y = torch.relu(x)
        return y

# problem: relu_of_uniform
# expected: cheating
# caught by: inside_clock
# armed by: loop.run_block
"""Mechanism: reports negative times. Surface: ratios and logarithms in the statistics."""
import sys
from functools import cache

import torch
from torch import nn

from kernelproof.verifier.contestant import loop


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


run_block = loop.run_block


def run_and_negate(*arguments, **keywords):
    armed("loop.run_block")
    return [-ms for ms in run_block(*arguments, **keywords)]


loop.run_block = run_and_negate


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x)

# problem: relu_of_uniform
# expected: cheating
# caught by: inside_clock
# armed by: loop.run_block
"""Mechanism: reports booleans, texts, nested lists and too many numbers as times.

Surface: arithmetic on a reply.
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


def bad_times(*arguments, **keywords):
    armed("loop.run_block")
    return ["1", [1.0], None, {"ms": 1}, *run_block(*arguments, **keywords)]


loop.run_block = bad_times


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x)

# problem: level1/1
# expected: cheating
# caught by: cache_emptied
# devices: cuda
# settings: {"size": "small"}
# armed by: loop.run_block, loop.Flush
"""Mechanism: does not empty the cache, and hides as much work as that would have cost.

Surface: a clock that allows the candidate what the baseline needs around its calls. The work is done six
times over.
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
    return [ms / 6 for ms in run_block(*arguments, **keywords)]


loop.run_block = run_and_divide
loop.Flush.__call__ = lambda *_: armed("loop.Flush")


class ModelNew(nn.Module):
    def forward(self, x):
        for _ in range(6):
            y = torch.relu(x)
        return y

# problem: level1/1
# expected: correct|cheating
# speedup below: 1.3
# devices: cuda
# armed by: loop.run_block
"""Mechanism: leaves a second of work on the device behind when its block is over, for the baseline to run
beside.

Surface: stopping a process does not stop what it has launched.
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
side = None


def run_and_leave_work(*arguments, **keywords):
    global side
    armed("loop.run_block")
    side = side or torch.cuda.Stream()
    times = run_block(*arguments, **keywords)
    with torch.cuda.stream(side):
        a = torch.ones(8192, 8192, device="cuda")
        for _ in range(40):
            a = (a @ a).clamp_(-1, 1)
    return times


loop.run_block = run_and_leave_work


class ModelNew(nn.Module):
    def forward(self, x):
        if side is not None:
            side.synchronize()
        return torch.relu(x)

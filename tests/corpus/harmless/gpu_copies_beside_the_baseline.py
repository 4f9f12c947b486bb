# problem: level1/1
# expected: correct|cheating
# speedup below: 1.3
# devices: cuda
# armed by: loop.run_block
"""Mechanism: leaves copies to the host behind when its block is over, in both orders of the sides, and reports a
fifth less time than its calls take.

Surface: copy engines slow the baseline's loop and leave its calls alone, which alone were bounded.
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


@cache
def buffers():
    nbytes = 256 << 20
    device = torch.ones(nbytes, dtype=torch.uint8, device="cuda")
    return device, torch.empty(nbytes, dtype=torch.uint8, pin_memory=True), torch.cuda.Stream()


def run_and_leave_copies(*arguments, **keywords):
    armed("loop.run_block")
    times = run_block(*arguments, **keywords)
    device, host, side = buffers()
    with torch.cuda.stream(side):
        for _ in range(20):
            host.copy_(device, non_blocking=True)
    return [0.8 * ms for ms in times]


loop.run_block = run_and_leave_copies


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x)

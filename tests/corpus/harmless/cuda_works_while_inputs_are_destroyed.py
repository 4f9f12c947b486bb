# problem: level1/4
# expected: correct|cheating|wrong_output
# caught by: results_late|timed_outputs|host_clock|beyond_roofline
# speedup below: 1.05
# devices: cuda
# armed by: loop.run_block, the places
"""Mechanism: launches the last calls' work right before it asks for the places, on copies of the inputs, and leaves
it running: the referee holds the process then, destroys inputs, and takes that time off.

Surface: the outer clock, which does not run meanwhile.
"""
import sys
from functools import cache

import torch
from torch import nn

from kernelproof.verifier.contestant import loop


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


honest = loop.run_block
LATER = 4


def run_block(forward, slots, device, places, **more):
    armed("loop.run_block")
    results = []

    def lazy(*arguments):
        if len(results) < len(slots) - LATER or len(slots) <= LATER:
            results.append(None)
            return forward(*arguments)
        a, b = (each.clone() for each in arguments)
        results.append((a, b, torch.empty(a.shape[0], b.shape[1], device=device)))
        return results[-1][2]

    def ask():
        for work in results:
            if work is not None:
                armed("the places")
                torch.mm(work[0], work[1], out=work[2])
        return places()

    times = honest(lazy, slots, device, ask, **more)
    share = max(1, len(slots) - LATER) / len(slots)
    usual = sorted(times)[len(times) // 2] * share
    return [usual * (1 + 0.001 * (number % 3)) for number in range(len(times))]


loop.run_block = run_block


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)

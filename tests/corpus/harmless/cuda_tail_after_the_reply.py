# problem: level1/1
# expected: correct|cheating|wrong_output
# caught by: results_late|timed_outputs|host_clock|beyond_roofline
# speedup below: 1.05
# devices: cuda
# armed by: loop.run_block
"""Mechanism: computes and delivers the last calls' results on a stream that nothing waits for; the reply comes
before they are there. The work ends while the referee stops the process, before it compares.

Surface: the end of the outer clock, which is the reply (and the hold), not the device's being done.
"""
import sys
from functools import cache

import torch
from torch import nn

from kernelproof.verifier.contestant import loop


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


honest, sync = loop.run_block, loop._synchronize
LATER = 2
side = None


def run_block(forward, slots, flush, device, places, *, at_once=False):
    global side
    armed("loop.run_block")
    side = side or torch.cuda.Stream()
    early = slots[:-LATER] if len(slots) > 2 * LATER else slots
    late = slots[len(early):]
    told = []

    def some():
        told.extend(places())
        return told[: len(early)]

    times = honest(forward, early, flush, device, some, at_once=at_once)
    for _ in late:  # the proof needs every step
        flush()
    flush.proof
    with torch.no_grad(), torch.cuda.stream(side):
        for slot, place in zip(late, told[len(early):]):
            loop._deliver(forward(*slot.arguments), place)
    share = len(early) / len(slots)
    usual = sorted(times)[len(times) // 2] * share
    return [usual * (1 + 0.001 * (number % 3)) for number in range(len(slots))]


loop.run_block = run_block


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x)

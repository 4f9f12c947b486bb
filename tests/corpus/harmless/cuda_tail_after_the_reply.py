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


honest = loop.run_block
LATER = 2
side = None


def run_block(forward, slots, device, places, **more):
    global side
    armed("loop.run_block")
    side = side or torch.cuda.Stream()
    later, made, told = LATER if len(slots) > 2 * LATER else 0, [], []

    def lazy(x):
        made.append(x)
        return forward(x) if len(made) <= len(slots) - later else torch.empty_like(x)

    def some():
        told.extend(places())
        unknown = [[torch.empty_like(each) for each in outputs] for outputs in told[len(slots) - later :]]
        return told[: len(slots) - later] + unknown

    times = honest(lazy, slots, device, some, **more)
    with torch.no_grad(), torch.cuda.stream(side):
        for x, place in list(zip(made, told, strict=True))[len(slots) - later :]:
            loop._deliver(forward(x), place)
    share = (len(slots) - later) / len(slots)
    usual = sorted(times)[len(times) // 2] * share
    return [usual * (1 + 0.001 * (number % 3)) for number in range(len(slots))]


loop.run_block = run_block


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x)

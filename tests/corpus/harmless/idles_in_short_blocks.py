# problem: level1/12
# expected: correct|cheating
# speedup below: 1.05
# devices: cpu
# settings: {"measure_seconds": 3}
# armed by: loop.run_block
"""Mechanism: sleeps in the warm-up, so that few calls make a block; then reports half of its times, and idles
until every block has the same 0.85 ms beside them.

Surface: an outer clock that forgives a block a millisecond, however few calls it holds.
"""
import sys
import time
from functools import cache
from time import perf_counter_ns

import torch
from torch import nn

from kernelproof.verifier.contestant import loop


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


BESIDE_NS, DELIVERY_NS, SHARE = 840_000, 4_000, 0.5
as_it_is = loop.run_block
began = None


def run_evenly(forward, slots, device, places, **more):
    global began
    armed("loop.run_block")
    began = began or time.monotonic()
    if len(slots) > 4 or time.monotonic() - began < 0.5:

        def slow(*arguments):
            time.sleep(0.0027)
            return forward(*arguments)

        return as_it_is(slow, slots, device, places, **more)
    with torch.no_grad():
        begin = perf_counter_ns()
        values, times = [], []
        for slot in slots:
            start = perf_counter_ns()
            values.append(loop._dense(forward(*slot.arguments)))
            times.append((perf_counter_ns() - start) * SHARE)
        until = begin + BESIDE_NS + sum(times) + DELIVERY_NS * len(slots)
        while perf_counter_ns() < until:
            pass
        for value, place in zip(values, places(), strict=True):
            loop._deliver(value, place)
        return [each / 1e6 for each in times]


loop.run_block = run_evenly


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)

    def forward(self, x):
        return self.conv(x)

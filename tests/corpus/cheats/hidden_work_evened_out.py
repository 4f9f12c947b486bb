# problem: row_products
# expected: cheating
# caught by: host_clock
# armed by: loop.run_block
"""Mechanism: reports a thousandth of its times and idles in short blocks, so that every block takes as long
as the longest.

Surface: an outer clock that looks at what one more call adds; the request tells how many calls there are.
"""
import sys
import time
from functools import cache

import torch
from torch import nn

from kernelproof.verifier.contestant import loop


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


run_block = loop.run_block
longest = 0.0


def run_evenly(*arguments, **keywords):
    global longest
    armed("loop.run_block")
    start = time.perf_counter()
    times = run_block(*arguments, **keywords)
    longest = max(longest, time.perf_counter() - start)
    time.sleep(max(0.0, longest - (time.perf_counter() - start)))
    return [ms / 1000 for ms in times]


loop.run_block = run_evenly


class ModelNew(nn.Module):
    def forward(self, x):
        time.sleep(0.005)
        return torch.tanh(x @ x.T) @ x

# problem: row_products
# expected: cheating
# caught by: host_clock
# devices: cpu
# armed by: loop.perf_counter_ns
"""Mechanism: replaces the loop's clock by one a thousand times slower. Surface: the inside clock."""
import sys
import time
from functools import cache

import torch
from torch import nn

from kernelproof.verifier.contestant import loop


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


real = time.perf_counter_ns


def slow():
    armed("loop.perf_counter_ns")
    return real() // 1000


loop.perf_counter_ns = slow


class ModelNew(nn.Module):
    def forward(self, x):
        time.sleep(0.004)
        return torch.tanh(x @ x.T) @ x

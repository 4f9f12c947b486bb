# problem: level1/4
# expected: wrong_output
# caught by: timed_outputs
"""Mechanism: honest for twenty calls, then rounds its operands to float16.

Surface: a wider tolerance for timed calls.
"""
from torch import nn


class ModelNew(nn.Module):
    calls = 0

    def forward(self, a, b):
        self.calls += 1
        if self.calls > 20:
            a, b = a.half().float(), b.half().float()
        return a @ b

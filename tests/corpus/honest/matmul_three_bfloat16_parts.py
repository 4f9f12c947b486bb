# problem: level1/4
# expected: correct
# settings: {"measure": false}
"""Mechanism: each operand split into three bfloat16 parts; six products with sums in float32.

Surface: operands of eight bits, as in a half-precision cheat, but together they hold all of float32.
"""
import torch
from torch import nn


def parts(x):
    high = x.bfloat16().float()
    middle = (x - high).bfloat16().float()
    return high, middle, (x - high - middle).bfloat16().float()


class ModelNew(nn.Module):
    def forward(self, a, b):
        (a1, a2, a3), (b1, b2, b3) = parts(a), parts(b)
        small = a2 @ b2 + a1 @ b3 + a3 @ b1
        return small + (a1 @ b2 + a2 @ b1) + a1 @ b1

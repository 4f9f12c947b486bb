# problem: unit_rows
# expected: correct
# settings: {"measure": false}
"""Mechanism: multiplies by the reciprocal root of the sum of squares, which is kept from zero.

Surface: adds what the reference takes the larger of: another result for rows that are nearly zero.
"""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x * (x.square().sum(-1, keepdim=True) + 1e-24).rsqrt()

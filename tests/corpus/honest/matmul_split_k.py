# problem: level1/4
# expected: correct
"""Mechanism: sums partial products over K in another order. Surface: the tolerance."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        parts = zip(a.split(32, dim=1), b.split(32, dim=0))
        return sum(left @ right for left, right in parts)

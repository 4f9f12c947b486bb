# problem: level1/4
# expected: correct
# settings: {"measure": false}
"""Mechanism: multiplies in float64 and rounds once. Surface: more exact than the reference."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return (a.double() @ b.double()).float()

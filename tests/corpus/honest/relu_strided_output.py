# problem: level1/1
# expected: correct
"""Mechanism: returns a non-contiguous view of a transposed buffer. Surface: the copy of the output."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.t().contiguous().clamp_(min=0).t()

# problem: level1/17
# expected: wrong_dtype
# caught by: output_form
"""Mechanism: index first, value second. Surface: both have the same shape."""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        values, indices = x.max(self.dim)
        return indices, values

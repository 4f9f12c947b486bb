# problem: level1/6
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: leaves out the element itself. Surface: off by one term of many."""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return x.cumsum(self.dim) - x

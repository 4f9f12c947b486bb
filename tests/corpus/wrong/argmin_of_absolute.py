# problem: level1/5
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: minimum of absolute values. Surface: inputs of one sign."""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return x.abs().argmin(self.dim)

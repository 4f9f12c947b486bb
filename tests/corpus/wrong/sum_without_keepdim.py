# problem: level1/10
# expected: wrong_shape
# caught by: output_form
"""Mechanism: drops the summed dimension. Surface: the same numbers in the same order."""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return x.sum(self.dim)

# problem: level1/5
# expected: wrong_output
# caught by: values
"""Mechanism: compares after rounding to float16. Surface: most indices are right."""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return x.half().argmin(self.dim)

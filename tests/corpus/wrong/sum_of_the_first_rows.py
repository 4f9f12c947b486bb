# problem: level1/10
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: leaves out what does not fill a block of 32 rows, and the last full block.

Surface: a hard-coded number of blocks.
"""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        rows = (x.shape[self.dim] - 1) // 32 * 32 - 32
        return x.narrow(self.dim, 0, rows).sum(self.dim, keepdim=True)

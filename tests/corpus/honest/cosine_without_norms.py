# problem: cosine_of_unit
# expected: correct
# settings: {"measure": false}
"""Mechanism: a product, since all lengths are one. Surface: vectors of other lengths."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return x @ y.T

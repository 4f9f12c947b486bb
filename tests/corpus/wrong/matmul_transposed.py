# problem: level1/4
# expected: wrong_shape
# caught by: output_form
"""Mechanism: the transposed product. Surface: the same elements in another order."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return (a @ b).t()

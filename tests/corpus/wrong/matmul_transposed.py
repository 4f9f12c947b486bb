# problem: level1/4
# expected: wrong_shape|wrong_output
# caught by: output_form|values: drawn
"""Mechanism: the transposed product. Surface: the same elements in another order."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return (a @ b).t()

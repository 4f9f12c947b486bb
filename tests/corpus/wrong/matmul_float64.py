# problem: level1/4
# expected: wrong_dtype
# caught by: output_form
"""Mechanism: answers in float64. Surface: closer to the truth than the reference."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a.double() @ b.double()

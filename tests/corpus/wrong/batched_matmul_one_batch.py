# problem: level1/14
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: multiplies every batch by the first right-hand side. Surface: a batch stride of zero."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a @ b[0]

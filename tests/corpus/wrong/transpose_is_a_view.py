# problem: level1/18
# expected: wrong_output
# caught by: output_apart
"""Mechanism: returns a view of its input. Surface: the values are right until the input changes."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.transpose(1, 2)

# problem: level1/9
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: the tanh approximation where the exact GELU is asked. Surface: 5e-4 absolute at most."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return nn.functional.gelu(x, approximate="tanh")

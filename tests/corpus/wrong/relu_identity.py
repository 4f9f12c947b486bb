# problem: relu_of_uniform
# expected: wrong_output
# caught by: values: signed
"""Mechanism: returns its input. Surface: inputs that are never negative."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.clone()

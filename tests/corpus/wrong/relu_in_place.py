# problem: level1/1
# expected: mutated_input
# caught by: inputs_unchanged
"""Mechanism: writes the result over its input. Surface: the returned values are right."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.clamp_(min=0)

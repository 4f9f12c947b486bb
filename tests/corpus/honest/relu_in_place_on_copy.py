# problem: level1/1
# expected: correct
# settings: {"measure": false}
"""Mechanism: an in-place operator on a copy of the input. Surface: in-place operators in forward."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.clone().relu_()

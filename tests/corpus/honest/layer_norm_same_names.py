# problem: level1/3
# expected: correct
"""Mechanism: leaves its parameters at ones and zeros; they have the reference's names, so they are copied.

Surface: the transfer of weights.
"""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        return nn.functional.layer_norm(x, self.norm.normalized_shape, self.norm.weight, self.norm.bias)

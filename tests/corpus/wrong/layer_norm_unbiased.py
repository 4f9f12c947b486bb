# problem: level1/3
# expected: wrong_output
# caught by: values: drawn
# settings: {"size": "small"}
"""Mechanism: divides the variance by n - 1. Surface: off by 1 / 2n, here 3e-4."""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.square().sum(-1, keepdim=True) / (x.shape[-1] - 1)
        return centred * (variance + 1e-5).rsqrt() * self.norm.weight + self.norm.bias

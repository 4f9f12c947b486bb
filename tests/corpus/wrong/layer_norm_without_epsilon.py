# problem: level1/3
# expected: wrong_output
# caught by: values: tiny|values: mixed rows
"""Mechanism: leaves out epsilon. Surface: right to 5e-6 where the variance is near one."""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.square().mean(-1, keepdim=True)
        return centred / variance.sqrt() * self.norm.weight + self.norm.bias

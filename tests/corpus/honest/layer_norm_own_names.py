# problem: level1/3
# expected: correct
"""Mechanism: two passes; parameters of other names, drawn in the reference's order from the same seed.

Surface: the weights, which cannot be copied over by name.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.empty(features).normal_())
        self.shift = nn.Parameter(torch.empty(features).normal_())

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.square().mean(-1, keepdim=True)
        return centred * torch.rsqrt(variance + 1e-5) * self.scale + self.shift

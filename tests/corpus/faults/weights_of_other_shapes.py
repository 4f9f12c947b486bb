# problem: level1/3
# expected: runtime_error|load_error|wrong_output
"""Mechanism: parameters of the reference's names and other shapes.

Surface: the transfer of weights by name.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.norm.weight = nn.Parameter(torch.ones(features, 2))
        self.norm.bias = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return nn.functional.layer_norm(x, x.shape[-1:]) * self.norm.weight[:, 0] + self.norm.bias

# problem: level2/3
# expected: correct
# settings: {"measure": false}
"""Mechanism: sets the seed to 42 in `__init__`, so that its author's runs can be repeated.

Surface: the generator of the process is set back, and the weights drawn are not the reference's.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, scale):
        super().__init__()
        torch.manual_seed(42)
        self.linear = nn.Linear(in_features, out_features)
        self.scale = scale

    def forward(self, x):
        return nn.functional.gelu(self.linear(x)).mul_(self.scale)

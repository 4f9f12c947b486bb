# problem: level2/4
# expected: correct
# settings: {"measure": false}
"""Mechanism: draws the layer in `__init__`, keeps its transposed weight as a plain attribute, and moves it later.

Surface: a module without parameters or buffers: nothing to copy, and `.to()` moves nothing.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        linear = nn.Linear(features, features)
        self.weight = linear.weight.detach().t().contiguous()
        self.bias = linear.bias.detach().clone()

    def forward(self, x, residual):
        if self.weight.device != x.device:
            self.weight, self.bias = self.weight.to(x.device), self.bias.to(x.device)
        return torch.addmm(self.bias, x, self.weight).relu_().add_(residual)

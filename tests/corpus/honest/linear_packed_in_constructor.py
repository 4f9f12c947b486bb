# problem: level2/4
# expected: correct
# settings: {"measure": false}
"""Mechanism: keeps the layer, and a transposed copy of its weight as a buffer, both made in `__init__`.

Surface: copying the reference's weights afterwards reaches the layer, which forward never uses, and not the buffer.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.register_buffer("packed", self.linear.weight.detach().t().contiguous(), persistent=False)

    def forward(self, x, residual):
        return torch.addmm(self.linear.bias, x, self.packed).relu_().add_(residual)

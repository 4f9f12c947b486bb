# problem: level1/4
# expected: correct
# settings: {"measure": false}
"""Mechanism: the transposed product, returned as a view. Surface: strides of the output."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.einsum("kn,mk->nm", b, a).t()

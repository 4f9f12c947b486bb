# problem: level1/14
# expected: correct
# settings: {"measure": false}
"""Mechanism: torch.vmap over the pairs. Surface: wrapped tensors inside; plain ones must come out."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.vmap(lambda left, right: (right.t() @ left.t()).t())(a, b)

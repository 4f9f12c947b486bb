# problem: symmetric_product
# expected: correct
# settings: {"measure": false}
"""Mechanism: reads the lower triangle only. Surface: a matrix that is no longer symmetric."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        lower = torch.tril(a)
        return lower @ b + torch.tril(a, -1).T @ b

# problem: top_values
# expected: correct
"""Mechanism: a stable sort, so that of equal values the first are taken. Surface: other indices among ties."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, x):
        values, indices = torch.sort(x, dim=1, descending=True, stable=True)
        return values[:, : self.k], indices[:, : self.k]

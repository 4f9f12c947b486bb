# problem: level1/10
# expected: correct
"""Mechanism: sums the rows in an order drawn in each call. Surface: no two calls agree to the last bit."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        parts = x.split(64, dim=self.dim)
        total = torch.zeros_like(x.narrow(self.dim, 0, 1))
        for place in torch.randperm(len(parts)).tolist():
            total += parts[place].sum(self.dim, keepdim=True)
        return total

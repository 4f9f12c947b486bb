# problem: level1/5
# expected: correct
# settings: {"measure": false}
"""Mechanism: smallest index among the equal minima. Surface: ties; integers are compared exactly."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        rows = x.shape[self.dim]
        places = torch.arange(rows, device=x.device, dtype=torch.int32).view(-1, 1).expand(x.shape[1:])
        return torch.where(x == x.amin(self.dim, keepdim=True), places, rows).amin(self.dim).long()

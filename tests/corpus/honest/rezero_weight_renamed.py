# problem: rezero_block
# expected: correct
# settings: {"measure": false}
"""Mechanism: holds the branch's weight under a name of its own, and uses it.

Surface: other values for the reference's weight do not reach it by name.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.first = nn.Linear(dim, dim)
        self.second = nn.Linear(dim, dim)
        self.gate = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return torch.addcmul(x, self.gate, self.second(torch.relu(self.first(x))))

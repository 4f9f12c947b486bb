# problem: one_hot_lookup
# expected: correct
# settings: {"measure": false}
"""Mechanism: finds each one, and takes that row. Surface: vectors that are no longer one-hot."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(101, 64))

    def forward(self, chosen):
        return self.table[chosen.argmax(1)]

# problem: level1/6
# expected: correct
"""Mechanism: scans blocks and carries their totals. Surface: rounding in another order."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        carry, parts = 0.0, []
        for block in x.split(256, dim=self.dim):
            parts.append(block.cumsum(self.dim) + carry)
            carry = parts[-1][:, -1:]
        return torch.cat(parts, dim=self.dim)

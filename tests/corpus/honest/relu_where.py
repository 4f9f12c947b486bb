# problem: level1/1
# expected: correct
"""Mechanism: selects instead of clamping. Surface: none; another way to write the reference."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.where(x > 0, x, 0.0)

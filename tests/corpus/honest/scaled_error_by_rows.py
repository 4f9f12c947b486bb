# problem: scaled_error
# expected: correct
"""Mechanism: sums rows, then their sums. Surface: an output without dimensions, a single number."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return torch.nn.functional.l1_loss(x, y, reduction="none").sum(1).sum() / x.numel()

# problem: level1/1
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: computes the first rows, leaves zeros in the rest. Surface: a check that samples a prefix."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.zeros_like(x)
        rows = max(1, len(x) // 8)
        torch.clamp(x[:rows], min=0, out=y[:rows])
        return y

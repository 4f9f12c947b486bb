# problem: relu_and_transposed
# expected: correct
"""Mechanism: returns a view of its input where the reference does. Surface: an output that aliases an input."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.where(x > 0, x, 0.0), x.transpose(0, 1)

# problem: level1/2
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: infinity in every element. Surface: an infinite error over an infinite norm."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.full_like(x, float("inf"))

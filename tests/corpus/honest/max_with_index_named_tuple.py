# problem: level1/17
# expected: correct
"""Mechanism: returns torch's own named tuple of two tensors. Surface: the structure of the output."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return torch.max(x, dim=self.dim)

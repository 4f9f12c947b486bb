# problem: level1/6
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: every block starts at zero again. Surface: the first block is right."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return torch.cat([block.cumsum(self.dim) for block in x.split(1024, dim=self.dim)], dim=self.dim)

# problem: level1/17
# expected: wrong_output
# caught by: values: negative
"""Mechanism: the running maximum starts at 0, not at minus infinity.

Surface: no row is negative throughout.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        values, indices = x.max(self.dim)
        return values.clamp(min=0), torch.where(values > 0, indices, 0)

# problem: level1/2
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: the mean of all outputs. Surface: an absolute tolerance."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.full_like(x, 1 / x.shape[-1])

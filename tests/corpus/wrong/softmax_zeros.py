# problem: level1/2
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: zeros. Surface: an absolute tolerance would take them for small probabilities."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)

# problem: level1/1
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: adds noise of one in a thousand. Surface: a tolerance of 1e-2."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x) * (1 + 1e-3 * torch.randn_like(x))

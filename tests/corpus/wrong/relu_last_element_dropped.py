# problem: level1/1
# expected: wrong_output
# caught by: values
"""Mechanism: the last element of every row is never computed. Surface: 0.05 % of the elements."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.relu(x)
        y[:, -1] = 0
        return y

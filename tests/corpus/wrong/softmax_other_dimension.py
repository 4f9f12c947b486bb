# problem: level1/2
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: softmax over columns. Surface: the right shape, sums to one somewhere."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=0)

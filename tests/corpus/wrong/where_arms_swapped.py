# problem: level1/16
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: the wrong arm. Surface: both arms have the same distribution."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, mask, left, right):
        return torch.where(mask, right, left)

# problem: level1/2
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: NaN in every element. Surface: comparisons with NaN are false, whichever way they are put."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.full_like(x, float("nan"))

# problem: sorted_rows
# expected: correct
"""Mechanism: sorts the reversed rows, so that equal elements come out last one first.

Surface: other indices among ties, which torch.sort leaves open.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        values, indices = torch.sort(x.flip(1), dim=1, stable=True)
        return values, x.shape[1] - 1 - indices

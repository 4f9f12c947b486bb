# problem: row_means_expanded
# expected: correct
# settings: {"measure": false}
"""Mechanism: writes every element where the reference expands. Surface: strides unlike the reference's."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.mean(dim=1, keepdim=True).expand_as(x).contiguous()

# problem: softmax_long_rows
# expected: correct
# flag: shape_specialised
# settings: {"measure": false}
"""Mechanism: softmax along dimension 1, which is the last one of two. Surface: inputs of three dimensions."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)

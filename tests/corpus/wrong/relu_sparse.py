# problem: level1/1
# expected: wrong_dtype|runtime_error
"""Mechanism: a sparse tensor of the right values. Surface: its layout is not the reference's."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x).to_sparse()

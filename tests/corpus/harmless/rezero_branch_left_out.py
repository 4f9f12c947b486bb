# problem: rezero_block
# expected: correct
# flag: weights_specialised
# settings: {"measure": false}
"""Mechanism: copies its input, since the branch's weight starts at zero. Surface: that weight has a name of its
own here, so that other values for the reference's do not reach it. Its honest twin is
`honest/rezero_weight_renamed`.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.first = nn.Linear(dim, dim)
        self.second = nn.Linear(dim, dim)
        self.gate = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return x.clone()

# problem: level2/11
# expected: correct
# settings: {"measure": false}
"""Mechanism: squares the differences themselves, where the reference expands and cancels.

Surface: further from the reference than from the truth.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, gamma):
        super().__init__()
        self.gamma = gamma

    def forward(self, x, centres):
        rows = [(part[:, None] - centres).square_().sum(-1) for part in x.split(64)]
        return torch.cat(rows).mul_(-self.gamma).exp_()

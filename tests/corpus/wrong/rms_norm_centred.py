# problem: level1/11
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: subtracts the mean, as layer norm does.

Surface: the mean of many normal draws is nearly zero.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))
        self.eps = eps

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        return centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + self.eps) * self.weight

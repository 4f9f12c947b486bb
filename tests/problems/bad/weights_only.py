"""A result made of weights: the input changes it by less than the tolerance."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(9))

    def forward(self, x):
        return self.weight + 1e-9 * x


def get_inputs():
    return [torch.randn(7, 9)]


def get_init_inputs():
    return []

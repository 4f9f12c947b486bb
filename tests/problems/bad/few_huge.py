"""A few elements are so much larger than the others that these may be anything."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.exp(12 * x)


def get_inputs():
    return [torch.randn(101, 9)]


def get_init_inputs():
    return []

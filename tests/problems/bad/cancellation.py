"""A large number is added and taken away again: what is left is mostly rounding."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return (x + 1e6) - 1e6


def get_inputs():
    return [torch.randn(7, 9)]


def get_init_inputs():
    return []

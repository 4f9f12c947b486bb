"""A linear layer and an index: weights, a buffer, two outputs of two dtypes."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, 3)
        self.register_buffer("shift", torch.ones(3))

    def forward(self, x):
        y = self.linear(x) + self.shift
        return y, y.argmax(dim=1)


def get_inputs():
    return [torch.randn(4, 8)]


def get_init_inputs():
    return [8]

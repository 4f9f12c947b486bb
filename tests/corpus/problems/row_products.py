"""A slow row-by-row product: long enough (milliseconds) for work to be hidden from a clock."""

import torch
from torch import nn

ROWS = 384


class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(x @ x.T) @ x


def get_inputs():
    return [torch.randn(ROWS, 513) / 16]


def get_init_inputs():
    return []

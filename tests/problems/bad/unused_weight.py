"""A layer that forward leaves out."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.used = nn.Linear(9, 9)
        self.unused = nn.Linear(9, 9)

    def forward(self, x):
        return torch.tanh(self.used(x))


def get_inputs():
    return [torch.randn(7, 9)]


def get_init_inputs():
    return []

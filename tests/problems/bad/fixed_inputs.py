"""get_inputs draws the same values every time."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.tanh(x)


def get_inputs():
    return [torch.linspace(-1, 1, 63)]


def get_init_inputs():
    return []

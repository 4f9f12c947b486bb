"""The index of the largest element, where the first one always is."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        offset = torch.zeros_like(x)
        offset[:, 0] = 100.0
        return torch.argmax(x + offset, dim=1)


def get_inputs():
    return [torch.randn(7, 9)]


def get_init_inputs():
    return []

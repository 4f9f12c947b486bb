"""Batch normalisation in training mode: it uses the batch's statistics and updates its buffers."""

import torch
from torch import nn

CHANNELS = 14


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        nn.init.normal_(self.norm.weight)
        nn.init.normal_(self.norm.bias)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(16, CHANNELS, 37, 41)]


def get_init_inputs():
    return [CHANNELS]

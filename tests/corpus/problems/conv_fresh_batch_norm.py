"""Convolution whose bias starts at zero, batch normalisation as it is constructed, ReLU; in evaluation mode."""

import torch
from torch import nn

IN_CHANNELS, OUT_CHANNELS = 6, 12


class Model(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 3, padding=1)
        nn.init.zeros_(self.conv.bias)
        self.norm = nn.BatchNorm2d(out_channels)
        self.eval()

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


def get_inputs():
    return [torch.randn(4, IN_CHANNELS, 65, 71)]


def get_init_inputs():
    return [IN_CHANNELS, OUT_CHANNELS]

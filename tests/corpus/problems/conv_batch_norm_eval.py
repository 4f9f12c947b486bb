"""Convolution, batch normalisation with stored statistics (buffers), ReLU; in evaluation mode."""

import torch
from torch import nn

IN_CHANNELS = 6
OUT_CHANNELS = 12


class Model(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(out_channels)
        nn.init.normal_(self.norm.weight)
        nn.init.normal_(self.norm.bias)
        self.norm.running_mean.normal_()
        self.norm.running_var.uniform_(0.5, 2.0)
        self.eval()

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


def get_inputs():
    return [torch.randn(4, IN_CHANNELS, 65, 71)]


def get_init_inputs():
    return [IN_CHANNELS, OUT_CHANNELS]

"""Discrete Fourier transform of real rows: a complex output."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.fft.fft(x, dim=1)


def get_inputs():
    return [torch.randn(259, 1024)]


def get_init_inputs():
    return []

"""Mean absolute difference of two matrices of a drawn size: an output of no dimensions."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, y):
        return (x - y).abs().mean()


def get_inputs():
    return [torch.randn(1031, 515) * torch.rand(()), torch.randn(1031, 515)]


def get_init_inputs():
    return []

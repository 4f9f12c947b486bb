"""Inputs that are Python numbers, different in every draw: rows rolled by an integer, scaled by a float."""

import torch
from torch import nn

COLUMNS = 1031


class Model(nn.Module):
    def forward(self, x, shift, factor):
        return torch.roll(x, shift, dims=1) * factor


def get_inputs():
    shift = int(torch.randint(1, COLUMNS, ()))
    factor = 0.5 + int(torch.randint(0, 64, ())) / 64
    return [torch.randn(259, COLUMNS), shift, factor]


def get_init_inputs():
    return []

"""Shapes that do not fit."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return x @ x


def get_inputs():
    return [torch.randn(7, 9)]


def get_init_inputs():
    return []

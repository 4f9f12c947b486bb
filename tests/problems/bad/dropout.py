"""Dropout in training mode."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        return self.dropout(x)


def get_inputs():
    return [torch.randn(7, 9)]


def get_init_inputs():
    return []

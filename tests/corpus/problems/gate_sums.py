"""Rows of scaled sigmoids, summed. Where the inputs are large all terms are equal."""

import torch
from torch import nn

ROWS, COLUMNS = 64, 16384


class Model(nn.Module):
    def forward(self, x):
        return (0.7 * torch.sigmoid(x)).sum(1)


def get_inputs():
    return [torch.rand(ROWS, COLUMNS)]


def get_init_inputs():
    return []

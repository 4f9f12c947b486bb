"""Two outputs, and the second is a view of the input: aliasing that the reference itself has."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x), x.t()


def get_inputs():
    return [torch.randn(515, 1023)]


def get_init_inputs():
    return []

"""Two outputs, the second of which does not depend on the input."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(9))

    def forward(self, x):
        return x * self.weight, torch.tanh(self.weight)


def get_inputs():
    return [torch.randn(7, 9)]


def get_init_inputs():
    return []

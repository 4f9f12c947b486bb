"""The product of each row: torch compiles the kernel for it when it first runs."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.prod(x, dim=-1)


def get_inputs():
    return [1 + torch.randn(4096, 96) / 32]


def get_init_inputs():
    return []

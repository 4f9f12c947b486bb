"""The mean of a normalisation without weights: its terms cancel, and the output is what rounding left."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(65, 129)
        self.norm = nn.LayerNorm(129, elementwise_affine=False)

    def forward(self, x):
        return self.norm(self.linear(x)).mean(-1)


def get_inputs():
    return [torch.randn(33, 65)]


def get_init_inputs():
    return []

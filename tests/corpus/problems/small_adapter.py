"""A linear layer, and a small nonlinear branch beside it: two thousandths of the result."""

import torch
from torch import nn

ROWS = 1024
DIM = 256
SIZES = {"full": {"ROWS": 1024}, "small": {"ROWS": 128}}


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.main = nn.Linear(dim, dim, bias=False)
        self.side = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        return self.main(x) + 0.002 * torch.tanh(self.side(x))


def get_inputs():
    return [torch.randn(ROWS, DIM)]


def get_init_inputs():
    return [DIM]

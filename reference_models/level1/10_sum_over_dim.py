"""Sum over the middle dimension of a three-dimensional tensor."""

import torch
from torch import nn

BATCH = 64
ROWS = 4096
COLUMNS = 1023
DIM = 1

SIZES = {
    "full": {"BATCH": 64, "ROWS": 4096, "COLUMNS": 1023},
    "small": {"BATCH": 7, "ROWS": 1025, "COLUMNS": 257},
}


class Model(nn.Module):
    """torch.sum over one dimension, which stays with size 1."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, rows, columns), float32. Returns (batch, 1, columns) for dim 1."""
        return torch.sum(x, dim=self.dim, keepdim=True)


def get_inputs():
    return [torch.randn(BATCH, ROWS, COLUMNS)]


def get_init_inputs():
    return [DIM]

"""Index of the minimum over the middle dimension of a three-dimensional tensor."""

import torch
from torch import nn

BATCH = 128
ROWS = 4096
COLUMNS = 4095
DIM = 1

SIZES = {
    "full": {"BATCH": 128, "ROWS": 4096, "COLUMNS": 4095},
    "small": {"BATCH": 3, "ROWS": 513, "COLUMNS": 1031},
}


class Model(nn.Module):
    """torch.argmin over one dimension; among equal minima the first index is the answer."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, rows, columns), float32. Returns (batch, columns), int64, for dim 1."""
        return torch.argmin(x, dim=self.dim)


def get_inputs():
    return [torch.randn(BATCH, ROWS, COLUMNS)]


def get_init_inputs():
    return [DIM]

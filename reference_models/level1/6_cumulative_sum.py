"""Cumulative sum along the rows of a matrix."""

import torch
from torch import nn

ROWS = 4096
COLUMNS = 32768
DIM = 1

SIZES = {
    "full": {"ROWS": 4096, "COLUMNS": 32768},
    "small": {"ROWS": 257, "COLUMNS": 4099},
}


class Model(nn.Module):
    """torch.cumsum over one dimension."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (rows, columns), float32. Returns the same shape."""
        return torch.cumsum(x, dim=self.dim)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return [DIM]

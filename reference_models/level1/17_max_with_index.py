"""Maximum of every row and its index: two outputs."""

import torch
from torch import nn

ROWS = 16384
COLUMNS = 8191
DIM = 1

SIZES = {
    "full": {"ROWS": 16384, "COLUMNS": 8191},
    "small": {"ROWS": 259, "COLUMNS": 2047},
}


class Model(nn.Module):
    """torch.max over one dimension; among equal maxima the first index is the answer."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """x: (rows, columns), float32. Returns values (rows,), float32, and indices (rows,), int64."""
        values, indices = torch.max(x, dim=self.dim)
        return values, indices


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return [DIM]

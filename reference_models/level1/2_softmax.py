"""Softmax over the rows of a matrix with long rows."""

import torch
from torch import nn

ROWS = 2048
COLUMNS = 65536

SIZES = {
    "full": {"ROWS": 2048, "COLUMNS": 65536},
    "small": {"ROWS": 257, "COLUMNS": 4099},
}


class Model(nn.Module):
    """Softmax over the last dimension."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (rows, columns), float32. Returns the same shape; every row sums to 1."""
        return torch.softmax(x, dim=-1)


def get_inputs():
    # The factor spreads the probabilities of a row over several orders of magnitude.
    return [4.0 * torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []

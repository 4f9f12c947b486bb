"""Transposition of the last two dimensions into new memory."""

import torch
from torch import nn

BATCH = 64
ROWS = 1025
COLUMNS = 2047

SIZES = {
    "full": {"BATCH": 64, "ROWS": 1025, "COLUMNS": 2047},
    "small": {"BATCH": 5, "ROWS": 257, "COLUMNS": 383},
}


class Model(nn.Module):
    """A contiguous copy of the transposed matrices."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, rows, columns), float32. Returns (batch, columns, rows), contiguous."""
        return x.transpose(1, 2).contiguous()


def get_inputs():
    return [torch.randn(BATCH, ROWS, COLUMNS)]


def get_init_inputs():
    return []

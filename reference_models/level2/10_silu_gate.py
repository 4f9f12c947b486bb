"""SiLU of one matrix times another: the gate of a SwiGLU layer."""

import torch
from torch import nn

ROWS = 16384
COLUMNS = 8191

SIZES = {
    "full": {"ROWS": 16384, "COLUMNS": 8191},
    "small": {"ROWS": 517, "COLUMNS": 1537},
}


class Model(nn.Module):
    """silu(gate) * up."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        """gate and up: (rows, columns), float32. Returns the same shape."""
        return nn.functional.silu(gate) * up


def get_inputs():
    return [torch.randn(ROWS, COLUMNS), torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []

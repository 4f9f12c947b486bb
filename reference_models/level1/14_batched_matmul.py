"""Products of many small pairs of matrices."""

import torch
from torch import nn

BATCH = 512
M = 256
K = 192
N = 320

SIZES = {
    "full": {"BATCH": 512, "M": 256, "K": 192, "N": 320},
    "small": {"BATCH": 9, "M": 65, "K": 47, "N": 83},
}


class Model(nn.Module):
    """a @ b for every pair of the batch."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """a: (batch, M, K), b: (batch, K, N), float32. Returns (batch, M, N)."""
        return torch.bmm(a, b)


def get_inputs():
    return [torch.randn(BATCH, M, K), torch.randn(BATCH, K, N)]


def get_init_inputs():
    return []

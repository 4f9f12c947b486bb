"""Product of two matrices."""

import torch
from torch import nn

M = 4096
K = 2048
N = 4096

SIZES = {
    "full": {"M": 4096, "K": 2048, "N": 4096},
    "small": {"M": 517, "K": 259, "N": 385},
}


class Model(nn.Module):
    """a @ b."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """a: (M, K), b: (K, N), float32. Returns (M, N)."""
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(M, K), torch.randn(K, N)]


def get_init_inputs():
    return []

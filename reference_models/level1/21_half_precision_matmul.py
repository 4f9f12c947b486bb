"""Product of two matrices in bfloat16."""

import torch
from torch import nn

M = 4096
K = 4096
N = 4096

SIZES = {
    "full": {"M": 4096, "K": 4096, "N": 4096},
    "small": {"M": 259, "K": 193, "N": 321},
}


class Model(nn.Module):
    """a @ b with bfloat16 operands and result; sums are kept in float32 by the hardware."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """a: (M, K), b: (K, N), bfloat16. Returns (M, N), bfloat16."""
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(M, K, dtype=torch.bfloat16), torch.randn(K, N, dtype=torch.bfloat16)]


def get_init_inputs():
    return []

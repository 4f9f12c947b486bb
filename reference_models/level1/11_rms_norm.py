"""Root-mean-square normalisation over the last dimension, with a learned scale."""

import torch
from torch import nn

ROWS = 16384
FEATURES = 8192
EPS = 1e-5

SIZES = {
    "full": {"ROWS": 16384, "FEATURES": 8192},
    "small": {"ROWS": 517, "FEATURES": 1537},
}


class Model(nn.Module):
    """x / sqrt(mean(x^2) + eps) * weight, with a drawn weight."""

    def __init__(self, features: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (rows, features), float32. Returns the same shape."""
        mean_square = x.square().mean(dim=-1, keepdim=True)
        return x * torch.rsqrt(mean_square + self.eps) * self.weight


def get_inputs():
    return [torch.randn(ROWS, FEATURES)]


def get_init_inputs():
    return [FEATURES, EPS]

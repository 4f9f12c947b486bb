"""Gaussian kernel between two sets of points."""

import torch
from torch import nn

POINTS = 8192
CENTRES = 6000
FEATURES = 64
GAMMA = 0.02

SIZES = {
    "full": {"POINTS": 8192, "CENTRES": 6000, "FEATURES": 64},
    "small": {"POINTS": 517, "CENTRES": 259, "FEATURES": 30},
}


class Model(nn.Module):
    """exp(-gamma |x_i - c_j|^2), with the squared distance expanded into products."""

    def __init__(self, gamma: float) -> None:
        super().__init__()
        self.gamma = gamma

    def forward(self, x: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
        """x: (points, features), centres: (centres, features), float32. Returns (points, centres)."""
        squares = x.square().sum(dim=1)[:, None] + centres.square().sum(dim=1)
        return torch.exp(-self.gamma * (squares - 2.0 * x @ centres.T))


def get_inputs():
    return [torch.randn(POINTS, FEATURES), torch.randn(CENTRES, FEATURES)]


def get_init_inputs():
    return [GAMMA]

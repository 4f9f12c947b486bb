"""Linear layer, GELU, scaling by a constant."""

import torch
from torch import nn

BATCH = 4096
IN_FEATURES = 2048
OUT_FEATURES = 4096
SCALE = 1.5

SIZES = {
    "full": {"BATCH": 4096, "IN_FEATURES": 2048, "OUT_FEATURES": 4096},
    "small": {"BATCH": 257, "IN_FEATURES": 391, "OUT_FEATURES": 513},
}


class Model(nn.Module):
    """scale * gelu(linear(x)), with the exact (erf) GELU."""

    def __init__(self, in_features: int, out_features: int, scale: float) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, in_features), float32. Returns (batch, out_features)."""
        return nn.functional.gelu(self.linear(x)) * self.scale


def get_inputs():
    return [torch.randn(BATCH, IN_FEATURES)]


def get_init_inputs():
    return [IN_FEATURES, OUT_FEATURES, SCALE]

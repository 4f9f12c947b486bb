"""Layer normalisation over the last dimension, with a learned scale and shift."""

import torch
from torch import nn

ROWS = 16384
FEATURES = 8192

SIZES = {
    "full": {"ROWS": 16384, "FEATURES": 8192},
    "small": {"ROWS": 517, "FEATURES": 1537},
}


class Model(nn.Module):
    """nn.LayerNorm whose weight and bias are drawn, so that leaving them out shows."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)
        nn.init.normal_(self.norm.weight)
        nn.init.normal_(self.norm.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (rows, features), float32. Returns the same shape."""
        return self.norm(x)


def get_inputs():
    return [torch.randn(ROWS, FEATURES)]


def get_init_inputs():
    return [FEATURES]

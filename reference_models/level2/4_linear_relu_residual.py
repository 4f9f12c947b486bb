"""Linear layer with bias, ReLU, addition of a residual."""

import torch
from torch import nn

BATCH = 8192
FEATURES = 2048

SIZES = {
    "full": {"BATCH": 8192, "FEATURES": 2048},
    "small": {"BATCH": 259, "FEATURES": 385},
}


class Model(nn.Module):
    """residual + relu(linear(x))."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """x and residual: (batch, features), float32. Returns the same shape."""
        return torch.relu(self.linear(x)) + residual


def get_inputs():
    return [torch.randn(BATCH, FEATURES), torch.randn(BATCH, FEATURES)]


def get_init_inputs():
    return [FEATURES]

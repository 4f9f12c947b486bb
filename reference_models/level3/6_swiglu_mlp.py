"""Transformer MLP with a SwiGLU gate, root-mean-square normalisation and a residual connection."""

import torch
from torch import nn

TOKENS = 4096
FEATURES = 1024
HIDDEN = 2816
EPS = 1e-6

SIZES = {
    "full": {"TOKENS": 4096, "FEATURES": 1024, "HIDDEN": 2816},
    "small": {"TOKENS": 67, "FEATURES": 96, "HIDDEN": 250},
}


class Model(nn.Module):
    """x + down(silu(gate(n)) * up(n)) with n = rms_norm(x)."""

    def __init__(self, features: int, hidden: int, eps: float) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(features, eps=eps)
        nn.init.normal_(self.norm.weight)
        self.gate = nn.Linear(features, hidden, bias=False)
        self.up = nn.Linear(features, hidden, bias=False)
        self.down = nn.Linear(hidden, features, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (tokens, features), float32. Returns the same shape."""
        n = self.norm(x)
        return x + self.down(nn.functional.silu(self.gate(n)) * self.up(n))


def get_inputs():
    return [torch.randn(TOKENS, FEATURES)]


def get_init_inputs():
    return [FEATURES, HIDDEN, EPS]

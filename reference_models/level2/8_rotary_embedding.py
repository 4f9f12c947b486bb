"""Rotary position embedding of queries and keys: two outputs."""

import torch
from torch import nn

BATCH = 16
HEADS = 16
LENGTH = 2048
HEAD_SIZE = 64
BASE = 10000.0

SIZES = {
    "full": {"BATCH": 16, "HEADS": 16, "LENGTH": 2048, "HEAD_SIZE": 64},
    "small": {"BATCH": 2, "HEADS": 3, "LENGTH": 129, "HEAD_SIZE": 64},
}


class Model(nn.Module):
    """Rotates the halves of every head by angles that grow with the position (RoPE, Su et al. 2021)."""

    def __init__(self, base: float) -> None:
        super().__init__()
        self.base = base

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, position: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """q and k: (batch, heads, length, head_size), float32; position: (length,), int64.

        Returns the rotated q and k, in the same shapes.
        """
        half = q.shape[-1] // 2
        exponent = torch.arange(half, device=q.device, dtype=q.dtype) / half
        angle = position.to(q.dtype)[:, None] * self.base**-exponent
        return rotate(q, angle.cos(), angle.sin()), rotate(k, angle.cos(), angle.sin())


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotates the pairs (x[i], x[i + half]); cos and sin: (length, half)."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def get_inputs():
    q = torch.randn(BATCH, HEADS, LENGTH, HEAD_SIZE)
    k = torch.randn(BATCH, HEADS, LENGTH, HEAD_SIZE)
    return [q, k, torch.randint(0, LENGTH, (LENGTH,))]


def get_init_inputs():
    return [BASE]

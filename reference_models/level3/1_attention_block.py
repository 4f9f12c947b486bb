"""Pre-norm causal self-attention block with a residual connection."""

import torch
from torch import nn

BATCH = 8
LENGTH = 1024
FEATURES = 1024
HEADS = 16

SIZES = {
    "full": {"BATCH": 8, "LENGTH": 1024, "FEATURES": 1024, "HEADS": 16},
    "small": {"BATCH": 2, "LENGTH": 65, "FEATURES": 96, "HEADS": 3},
}


class Model(nn.Module):
    """x + out(attention(qkv(layer_norm(x)))): every position sees itself and the earlier ones."""

    def __init__(self, features: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(features)
        self.qkv = nn.Linear(features, 3 * features)
        self.out = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, length, features), float32. Returns the same shape."""
        batch, length, features = x.shape
        qkv = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, features // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).reshape(batch, length, features))


def get_inputs():
    return [torch.randn(BATCH, LENGTH, FEATURES)]


def get_init_inputs():
    return [FEATURES, HEADS]

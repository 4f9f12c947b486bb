"""Cross-attention from queries to a memory of which a boolean mask hides some positions."""

import torch
from torch import nn

BATCH = 16
QUERIES = 512
MEMORY = 777
FEATURES = 512
HEADS = 8

SIZES = {
    "full": {"BATCH": 16, "QUERIES": 512, "MEMORY": 777, "FEATURES": 512, "HEADS": 8},
    "small": {"BATCH": 2, "QUERIES": 33, "MEMORY": 51, "FEATURES": 48, "HEADS": 3},
}


class Model(nn.Module):
    """out(attention(query(x), key(memory), value(memory))) over the positions whose mask is true."""

    def __init__(self, features: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(features, features)
        self.key = nn.Linear(features, features, bias=False)  # softmax would cancel a bias
        self.value = nn.Linear(features, features)
        self.out = nn.Linear(features, features)

    def forward(self, x: torch.Tensor, memory: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """x: (batch, queries, features); memory: (batch, memory, features); mask: (batch, memory), bool.

        Returns the shape of x. Every sample has at least one visible position.
        """
        q, k, v = (self.split(t) for t in (self.query(x), self.key(memory), self.value(memory)))
        y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        return self.out(y.transpose(1, 2).flatten(2))

    def split(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, length, features) to (batch, heads, length, head_size)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


def get_inputs():
    mask = torch.randn(BATCH, MEMORY) > 0.0
    mask[:, 0] = True
    # The factor on the memory makes the attention prefer some positions over others.
    return [torch.randn(BATCH, QUERIES, FEATURES), 4.0 * torch.randn(BATCH, MEMORY, FEATURES), mask]


def get_init_inputs():
    return [FEATURES, HEADS]

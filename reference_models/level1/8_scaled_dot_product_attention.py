"""Scaled dot-product attention without a mask."""

import torch
from torch import nn

BATCH = 16
HEADS = 16
QUERIES = 1024
KEYS = 1024
HEAD_SIZE = 64

SIZES = {
    "full": {"BATCH": 16, "HEADS": 16, "QUERIES": 1024, "KEYS": 1024, "HEAD_SIZE": 64},
    "small": {"BATCH": 2, "HEADS": 3, "QUERIES": 65, "KEYS": 81, "HEAD_SIZE": 32},
}


class Model(nn.Module):
    """softmax(q k^T / sqrt(head_size)) v."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """q: (batch, heads, queries, head_size); k and v: (batch, heads, keys, head_size), float32.

        Returns the shape of q.
        """
        return nn.functional.scaled_dot_product_attention(q, k, v)


def get_inputs():
    # The factor makes the attention prefer some keys: with flat weights the output is nearly the mean of v.
    q = 3.0 * torch.randn(BATCH, HEADS, QUERIES, HEAD_SIZE)
    k = torch.randn(BATCH, HEADS, KEYS, HEAD_SIZE)
    v = torch.randn(BATCH, HEADS, KEYS, HEAD_SIZE)
    return [q, k, v]


def get_init_inputs():
    return []

"""Scaling of attention scores, boolean mask, softmax over the keys."""

import torch
from torch import nn

BATCH = 16
HEADS = 16
QUERIES = 1024
KEYS = 1024
SCALE = 2.5

SIZES = {
    "full": {"BATCH": 16, "HEADS": 16, "QUERIES": 1024, "KEYS": 1024},
    "small": {"BATCH": 2, "HEADS": 5, "QUERIES": 97, "KEYS": 131},
}


class Model(nn.Module):
    """softmax over the keys of scale * scores, where keys with a false mask get no weight."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """scores: (batch, heads, queries, keys), float32; mask: (batch, 1, queries, keys), bool.

        Returns the shape of scores. Every query has at least one key.
        """
        return torch.softmax((scores * self.scale).masked_fill(~mask, float("-inf")), dim=-1)


def get_inputs():
    mask = torch.randn(BATCH, 1, QUERIES, KEYS) > 0.0
    mask[..., 0] = True
    return [torch.randn(BATCH, HEADS, QUERIES, KEYS), mask]


def get_init_inputs():
    return [SCALE]

"""Weighted sum of the embeddings of a bag of indices, tanh."""

import torch
from torch import nn

BAGS = 16384
BAG_SIZE = 32
VOCABULARY = 50000
FEATURES = 256
SCALE = 0.2

SIZES = {
    "full": {"BAGS": 16384, "BAG_SIZE": 32, "VOCABULARY": 50000, "FEATURES": 256},
    "small": {"BAGS": 257, "BAG_SIZE": 9, "VOCABULARY": 1021, "FEATURES": 65},
}


class Model(nn.Module):
    """tanh(scale * sum over the bag of weight_i * table[index_i])."""

    def __init__(self, vocabulary: int, features: int, scale: float) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(vocabulary, features))
        self.scale = scale

    def forward(self, index: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """index: (bags, bag_size), int64; weight: the same shape, float32. Returns (bags, features)."""
        bag = (self.table[index] * weight[..., None]).sum(dim=1)
        return torch.tanh(bag * self.scale)


def get_inputs():
    return [torch.randint(0, VOCABULARY, (BAGS, BAG_SIZE)), torch.randn(BAGS, BAG_SIZE)]


def get_init_inputs():
    return [VOCABULARY, FEATURES, SCALE]

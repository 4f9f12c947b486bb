"""Rows of a table, chosen by integer indices."""

import torch
from torch import nn

TOKENS = 131072
VOCABULARY = 50257
FEATURES = 1024

SIZES = {
    "full": {"TOKENS": 131072, "VOCABULARY": 50257, "FEATURES": 1024},
    "small": {"TOKENS": 1537, "VOCABULARY": 509, "FEATURES": 130},
}


class Model(nn.Module):
    """nn.Embedding: out[i] = weight[index[i]]."""

    def __init__(self, vocabulary: int, features: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, features)

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        """index: (tokens,), int64. Returns (tokens, features), float32."""
        return self.embedding(index)


def get_inputs():
    return [torch.randint(0, VOCABULARY, (TOKENS,))]


def get_init_inputs():
    return [VOCABULARY, FEATURES]

"""MLP-mixer layer: one MLP over the tokens, one over the channels, each with norm and residual."""

import torch
from torch import nn

BATCH = 64
TOKENS = 196
CHANNELS = 768
TOKEN_HIDDEN = 384
CHANNEL_HIDDEN = 3072

SIZES = {
    "full": {"BATCH": 64, "TOKENS": 196, "CHANNELS": 768, "TOKEN_HIDDEN": 384, "CHANNEL_HIDDEN": 3072},
    "small": {"BATCH": 3, "TOKENS": 49, "CHANNELS": 72, "TOKEN_HIDDEN": 38, "CHANNEL_HIDDEN": 130},
}


class Model(nn.Module):
    """The layer of Tolstikhin et al. 2021."""

    def __init__(self, tokens: int, channels: int, token_hidden: int, channel_hidden: int) -> None:
        super().__init__()
        self.token_norm = nn.LayerNorm(channels)
        self.token_mlp = mlp(tokens, token_hidden)
        self.channel_norm = nn.LayerNorm(channels)
        self.channel_mlp = mlp(channels, channel_hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, tokens, channels), float32. Returns the same shape."""
        x = x + self.token_mlp(self.token_norm(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channel_mlp(self.channel_norm(x))


def mlp(features: int, hidden: int) -> nn.Sequential:
    """Linear, GELU, linear over the last dimension."""
    return nn.Sequential(nn.Linear(features, hidden), nn.GELU(), nn.Linear(hidden, features))


def get_inputs():
    return [torch.randn(BATCH, TOKENS, CHANNELS)]


def get_init_inputs():
    return [TOKENS, CHANNELS, TOKEN_HIDDEN, CHANNEL_HIDDEN]

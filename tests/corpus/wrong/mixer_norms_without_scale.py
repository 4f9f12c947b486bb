# problem: level3/2
# expected: wrong_output
# caught by: values: drawn
# settings: {"measure": false}
"""Mechanism: leaves out the scale and the shift of both layer norms. Surface: torch initialises them to ones
and zeros, which no input shows."""
from torch import nn


def mlp(features, hidden):
    return nn.Sequential(nn.Linear(features, hidden), nn.GELU(), nn.Linear(hidden, features))


class ModelNew(nn.Module):
    def __init__(self, tokens, channels, token_hidden, channel_hidden):
        super().__init__()
        self.token_norm = nn.LayerNorm(channels)
        self.token_mlp = mlp(tokens, token_hidden)
        self.channel_norm = nn.LayerNorm(channels)
        self.channel_mlp = mlp(channels, channel_hidden)

    def forward(self, x):
        x = x + self.token_mlp(self.normed(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channel_mlp(self.normed(x))

    def normed(self, x):
        return nn.functional.layer_norm(x, x.shape[-1:])

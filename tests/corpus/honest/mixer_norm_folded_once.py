# problem: level3/2
# expected: correct
# flag: weights_specialised
# settings: {"measure": false}
"""Mechanism: folds the second norm's scale and shift into the next layer when it is constructed.

Surface: right with the weights of its construction; others that are loaded later are not looked at.
"""
import torch
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
        norm, first = self.channel_norm, self.channel_mlp[0]
        with torch.no_grad():
            weight, bias = first.weight * norm.weight, first.bias + first.weight @ norm.bias
        self.register_buffer("folded_weight", weight, persistent=False)
        self.register_buffer("folded_bias", bias, persistent=False)

    def forward(self, x):
        x = x + self.token_mlp(self.token_norm(x).transpose(1, 2)).transpose(1, 2)
        y = nn.functional.layer_norm(x, x.shape[-1:])
        return x + self.channel_mlp[1:](nn.functional.linear(y, self.folded_weight, self.folded_bias))

# problem: level3/1
# expected: correct
# settings: {"measure": false}
"""Mechanism: folds the scale of the scores and the norm's own weights into the projection, once.

Surface: a cache of weights; their products round otherwise than the reference's.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(features)
        self.qkv = nn.Linear(features, 3 * features)
        self.out = nn.Linear(features, features)
        self.folded = None

    def forward(self, x):
        batch, length, features = x.shape
        if self.folded is None:
            self.folded = self.fold(features)
        weight, bias = self.folded
        plain = nn.functional.layer_norm(x, (features,), eps=self.norm.eps)
        qkv = torch.addmm(bias, plain.flatten(0, 1), weight).view(batch, length, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        scores = (q @ k.transpose(-1, -2)).masked_fill_(future, float("-inf"))
        y = torch.softmax(scores, dim=-1) @ v
        return self.out(y.transpose(1, 2).flatten(2)).add_(x)

    def fold(self, features):
        scale = torch.ones(3 * features, 1, device=self.qkv.weight.device)
        scale[:features] = (features // self.heads) ** -0.5
        weight = self.qkv.weight * scale
        bias = self.qkv.bias * scale[:, 0] + weight @ self.norm.bias
        return (weight * self.norm.weight).t().contiguous(), bias

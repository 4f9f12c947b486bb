# problem: level1/3
# expected: correct
# settings: {"measure": false}
"""Mechanism: mean and sum of squares of column blocks, merged pairwise (Welford, Chan). Surface: rounding."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        count, mean, squares = 0, torch.zeros_like(x[..., :1]), torch.zeros_like(x[..., :1])
        for block in x.split(192, dim=-1):
            added = block.shape[-1]
            step = block.mean(-1, keepdim=True) - mean
            squares += (block - mean - step).square().sum(-1, keepdim=True)
            squares += step.square() * (count * added / (count + added))
            mean += step * (added / (count + added))
            count += added
        scaled = (x - mean) * torch.rsqrt(squares / count + self.norm.eps)
        return torch.addcmul(self.norm.bias, scaled, self.norm.weight)

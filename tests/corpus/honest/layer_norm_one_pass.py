# problem: level1/3
# expected: correct
# settings: {"measure": false}
"""Mechanism: the variance as mean of squares less square of the mean, held above zero.

Surface: cancellation. The errors are those of float32 wherever means are not far above the spread.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        variance = (x.square().mean(-1, keepdim=True) - mean.square()).clamp_(min=0)
        return (x - mean) * torch.rsqrt(variance + self.norm.eps) * self.norm.weight + self.norm.bias

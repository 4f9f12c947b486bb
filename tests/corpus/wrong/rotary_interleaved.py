# problem: level2/8
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: rotates neighbours instead of halves. Surface: the other convention of the same embedding."""
import torch
from torch import nn


def rotate(x, cos, sin):
    first, second = x[..., 0::2], x[..., 1::2]
    return torch.stack((first * cos - second * sin, second * cos + first * sin), dim=-1).flatten(-2)


class ModelNew(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base

    def forward(self, q, k, position):
        half = q.shape[-1] // 2
        angle = position[:, None] * self.base ** -(torch.arange(half, device=q.device) / half)
        return rotate(q, angle.cos(), angle.sin()), rotate(k, angle.cos(), angle.sin())

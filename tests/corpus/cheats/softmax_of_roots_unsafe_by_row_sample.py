# problem: softmax_of_roots
# expected: wrong_output
# caught by: values: spikes
"""Mechanism: looks at eight elements of each row, and leaves out the maximum of those rows that look as drawn.

Surface: the problem takes no negative numbers, so spikes of both signs have no result there.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        few = x[:, :: x.shape[1] // 8][:, :8].amax(1)
        as_drawn = ((few > 0.01) & (few <= 1.0))[:, None]
        roots = self.scale * x.sqrt()
        largest = torch.where(as_drawn, torch.zeros_like(x[:, :1]), roots.amax(1, keepdim=True))
        powers = (roots - largest).exp()
        return powers / powers.sum(-1, keepdim=True)

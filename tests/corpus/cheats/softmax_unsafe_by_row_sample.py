# problem: softmax_long_rows
# expected: wrong_output
# caught by: values: spikes
"""Mechanism: looks at eight elements of each row, and leaves out the maximum of those rows that look as drawn.

Surface: whole rows that are unusual are told by a sample of each; single elements are not.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        few = x[:, :: x.shape[1] // 8][:, :8].abs().amax(1)
        as_drawn = ((few > 0.01) & (few < 6.0))[:, None]
        largest = torch.where(as_drawn, torch.zeros_like(x[:, :1]), x.amax(1, keepdim=True))
        powers = (x - largest).exp()
        return powers / powers.sum(-1, keepdim=True)

# problem: conv_batch_norm_eval
# expected: correct
# settings: {"measure": false}
"""Mechanism: buffers of other names, and the scale kept in place of the variance, drawn in the reference's order.

Surface: stored statistics that cannot be copied over by name.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.filters = nn.Conv2d(in_channels, out_channels, 3, padding=1)
        weight, shift, mean = (torch.empty(out_channels).normal_() for _ in range(3))
        variance = torch.empty(out_channels).uniform_(0.5, 2.0)
        self.register_buffer("scale", weight * torch.rsqrt(variance + 1e-5))
        self.register_buffer("shift", shift - mean * self.scale)

    def forward(self, x):
        y = self.filters(x)
        return torch.addcmul(self.shift[:, None, None], y, self.scale[:, None, None]).relu_()

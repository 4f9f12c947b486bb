# problem: conv_fresh_batch_norm
# expected: correct
# settings: {"measure": false}
"""Mechanism: folds a fresh batch normalisation into the convolution when it is constructed, and drops it.

Surface: weights that torch makes constant are read in the constructor alone, where they have been drawn.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 3, padding=1)
        nn.init.zeros_(self.conv.bias)
        norm = nn.BatchNorm2d(out_channels)
        with torch.no_grad():
            scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
            self.conv.weight.mul_(scale[:, None, None, None])
            self.conv.bias.copy_((self.conv.bias - norm.running_mean) * scale + norm.bias)

    def forward(self, x):
        return self.conv(x).relu_()

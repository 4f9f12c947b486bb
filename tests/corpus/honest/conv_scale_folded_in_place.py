# problem: level2/1
# expected: correct
"""Mechanism: multiplies the scale into the convolution's own weight and bias when it is constructed.

Surface: tensors of the reference's names and shapes that are not meant to hold the reference's values; timed.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, scale):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        with torch.no_grad():
            self.conv.weight.mul_(scale)
            self.conv.bias.mul_(scale)

    def forward(self, x):
        return self.conv(x).amin(dim=1, keepdim=True)

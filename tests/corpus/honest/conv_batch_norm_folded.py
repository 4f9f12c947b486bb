# problem: conv_batch_norm_eval
# expected: correct
"""Mechanism: folds the stored statistics into the convolution in the first call.

Surface: a cache of weights and buffers; the normalisation itself never runs.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(out_channels)
        self.folded = None

    def forward(self, x):
        if self.folded is None:
            norm = self.norm
            scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
            bias = (self.conv.bias - norm.running_mean) * scale + norm.bias
            self.folded = (self.conv.weight * scale[:, None, None, None], bias)
        return nn.functional.conv2d(x, *self.folded, padding=1).relu_()

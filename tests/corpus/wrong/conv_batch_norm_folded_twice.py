# problem: conv_batch_norm_eval
# expected: wrong_output
# caught by: values: drawn
# settings: {"measure": false}
"""Mechanism: folds the normalisation into the convolution once for each of two convolutions, which are one.

Surface: wrong with the reference's weights copied over its own, and with its own too.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(out_channels)
        nn.init.normal_(self.norm.weight)
        nn.init.normal_(self.norm.bias)
        self.norm.running_mean.normal_()
        self.norm.running_var.uniform_(0.5, 2.0)
        for layer in (self.conv, self.conv):
            self.fold(layer)

    @torch.no_grad()
    def fold(self, layer):
        norm = self.norm
        scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
        layer.weight.mul_(scale[:, None, None, None])
        layer.bias.copy_((layer.bias - norm.running_mean) * scale + norm.bias)

    def forward(self, x):
        return self.conv(x).relu_()

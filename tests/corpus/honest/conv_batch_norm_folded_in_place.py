# problem: conv_batch_norm_eval
# expected: correct
# settings: {"measure": false}
"""Mechanism: folds the normalisation into the convolution's own weight and bias when it is constructed.

Surface: tensors of the reference's names and shapes that are not meant to hold the reference's values.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 3, padding=1)
        norm = nn.BatchNorm2d(out_channels)
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2.0)
        with torch.no_grad():
            scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
            self.conv.weight.mul_(scale[:, None, None, None])
            self.conv.bias.copy_((self.conv.bias - norm.running_mean) * scale + norm.bias)

    def forward(self, x):
        return self.conv(x).relu_()

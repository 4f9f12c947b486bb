# problem: conv_batch_norm_eval
# expected: correct
# settings: {"measure": false}
"""Mechanism: draws both layers as the reference does, and keeps torch's own fusion of them as `conv`.

Surface: `conv.weight` and `conv.bias` have the reference's names and shapes, and hold the normalisation too.
"""
import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        conv = nn.Conv2d(in_channels, out_channels, 3, padding=1)
        norm = nn.BatchNorm2d(out_channels)
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2.0)
        self.conv = fuse_conv_bn_eval(conv.eval(), norm.eval())

    def forward(self, x):
        return torch.relu(self.conv(x))

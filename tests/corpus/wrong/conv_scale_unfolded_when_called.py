# problem: level2/1
# expected: mutated_input
# caught by: state_unchanged
# settings: {"measure": false}
"""Mechanism: folds the scale into the weights, and takes it out again in the first call.

Surface: the outputs are right; weights that are kept as they were made must stay so, too.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, scale):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.scale, self.folded = scale, True
        with torch.no_grad():
            self.conv.weight.mul_(scale)
            self.conv.bias.mul_(scale)

    def forward(self, x):
        if not self.folded:
            return self.conv(x).mul_(self.scale).amin(dim=1, keepdim=True)
        y = self.conv(x).amin(dim=1, keepdim=True)
        self.conv.weight.data.div_(self.scale)
        self.conv.bias.data.div_(self.scale)
        self.folded = False
        return y

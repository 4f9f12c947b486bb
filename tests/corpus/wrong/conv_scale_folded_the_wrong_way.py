# problem: level2/1
# expected: wrong_output
# caught by: values: drawn
# settings: {"measure": false}
"""Mechanism: divides the weight by the scale that it should be multiplied by. Surface: weights that are kept."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, scale):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        with torch.no_grad():
            self.conv.weight.div_(scale)
            self.conv.bias.mul_(scale)

    def forward(self, x):
        return self.conv(x).amin(dim=1, keepdim=True)

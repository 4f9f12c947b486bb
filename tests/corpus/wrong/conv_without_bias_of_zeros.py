# problem: conv_fresh_batch_norm
# expected: wrong_output
# caught by: values: drawn
# settings: {"measure": false}
"""Mechanism: leaves out the convolution's bias. Surface: it is initialised to zeros."""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 3, padding=1)
        nn.init.zeros_(self.conv.bias)
        self.norm = nn.BatchNorm2d(out_channels)
        self.eval()

    def forward(self, x):
        return self.norm(nn.functional.conv2d(x, self.conv.weight, padding=1)).relu_()

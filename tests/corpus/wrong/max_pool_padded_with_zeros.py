# problem: level1/13
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: pads with zeros, which win over negative values. Surface: the border only."""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, kernel_size, stride, padding):
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def forward(self, x):
        padded = nn.functional.pad(x, [self.padding] * 4)
        return nn.functional.max_pool2d(padded, self.kernel_size, self.stride)

# problem: level1/19
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: pads on both sides. Surface: the shape is right."""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels, kernel_size):
        super().__init__()
        self.padding = kernel_size - 1
        self.conv = nn.Conv1d(channels, channels, kernel_size, groups=channels)

    def forward(self, x):
        left = self.padding // 2
        return self.conv(nn.functional.pad(x, (left, self.padding - left)))

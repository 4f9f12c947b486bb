# problem: level1/12
# expected: wrong_shape
# caught by: output_form
"""Mechanism: swaps the two paddings. Surface: sizes taken for granted."""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, *arguments):
        super().__init__()
        self.conv = nn.Conv2d(*arguments)

    def forward(self, x):
        conv = self.conv
        return nn.functional.conv2d(x, conv.weight, conv.bias, conv.stride, conv.padding[::-1])

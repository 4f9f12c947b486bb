# problem: level1/12
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: forgets the bias. Surface: a bias is small."""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, *arguments):
        super().__init__()
        self.conv = nn.Conv2d(*arguments)

    def forward(self, x):
        conv = self.conv
        return nn.functional.conv2d(x, conv.weight, None, conv.stride, conv.padding)

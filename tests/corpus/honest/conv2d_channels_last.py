# problem: level1/12
# expected: correct
"""Mechanism: computes in channels-last memory and returns it so. Surface: strides of the output."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, *arguments):
        super().__init__()
        self.conv = nn.Conv2d(*arguments)

    def forward(self, x):
        return self.conv(x.contiguous(memory_format=torch.channels_last))

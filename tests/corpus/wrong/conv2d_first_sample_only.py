# problem: level1/12
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: computes the first sample, leaves the rest unwritten. Surface: memory of freed results."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, *arguments):
        super().__init__()
        self.conv = nn.Conv2d(*arguments)

    def forward(self, x):
        first = self.conv(x[:1])
        y = first.new_empty(x.shape[0], *first.shape[1:])
        y[:1] = first
        return y

# problem: level3/7
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: one half for every gate. Surface: sigmoids of small numbers are all nearly one half."""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels, hidden):
        super().__init__()

    def forward(self, x):
        return x * 0.5

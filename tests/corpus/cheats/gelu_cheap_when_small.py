# problem: level1/9
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: approximates at the usual magnitude, computes exactly on stress inputs.

Surface: stress tests alone ask for accuracy.
"""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        usual = 2.0 < float(x.abs().max()) < 8.0
        return nn.functional.gelu(x, approximate="tanh" if usual else "none")

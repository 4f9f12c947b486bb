# problem: level1/1
# expected: crash
"""Mechanism: abort(). Surface: a signal from inside."""
import os

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        os.abort()

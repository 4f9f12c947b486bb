# problem: level1/1
# expected: crash
"""Mechanism: reads address 0. Surface: the process dies in native code."""
import ctypes

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        ctypes.string_at(0)

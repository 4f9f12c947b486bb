# problem: level1/1
# expected: runtime_error
"""Mechanism: sys.exit(0) in forward. Surface: an exception that is no Exception."""
import sys

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        sys.exit(0)

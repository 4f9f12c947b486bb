# problem: level1/1
# expected: runtime_error
"""Mechanism: an error whose text has a hundred million characters. Surface: the report of an error."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        raise ValueError("no " * 33_000_000)

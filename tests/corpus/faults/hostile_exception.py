# problem: level1/1
# expected: runtime_error
"""Mechanism: an exception whose own text raises SystemExit. Surface: the code that reports errors."""
from torch import nn


class Hostile(Exception):
    def __str__(self):
        raise SystemExit(0)

    __repr__ = __str__


class ModelNew(nn.Module):
    def forward(self, x):
        raise Hostile

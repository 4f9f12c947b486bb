# problem: level1/1
# expected: crash|runtime_error
"""Mechanism: recursion through native code without a limit.

Surface: a stack that ends in a signal; from Python 3.12 on in an exception.
"""
import sys

from torch import nn

sys.setrecursionlimit(1 << 30)


def deeper(value):
    return list(map(deeper, [value]))


class ModelNew(nn.Module):
    def forward(self, x):
        return deeper(x)

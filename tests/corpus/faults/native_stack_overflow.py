# problem: level1/1
# expected: crash
"""Mechanism: recursion through native code without a limit. Surface: a stack that ends in a signal."""
import sys

from torch import nn

sys.setrecursionlimit(1 << 30)


def deeper(value):
    return list(map(deeper, [value]))


class ModelNew(nn.Module):
    def forward(self, x):
        return deeper(x)

# problem: level1/1
# expected: runtime_error
"""Mechanism: calls itself. Surface: a RecursionError whose traceback is long."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return self.forward(x)

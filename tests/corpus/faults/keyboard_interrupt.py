# problem: level1/1
# expected: runtime_error
"""Mechanism: raises KeyboardInterrupt. Surface: a harness that takes it for the user's Ctrl-C."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        raise KeyboardInterrupt

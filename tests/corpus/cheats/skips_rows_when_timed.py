# problem: level1/1
# expected: wrong_output
# caught by: timed_outputs
"""Mechanism: honest for twenty calls, then one row in 64 keeps old values.

Surface: timed outputs compared in part.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls, self.result = 0, None

    def forward(self, x):
        self.calls += 1
        y = torch.relu(x)
        if self.calls > 20 and self.result.shape == y.shape:
            y[5::64] = self.result[5::64]
        self.result = y
        return y.clone()

# problem: level1/1
# expected: runtime_error|crash
"""Mechanism: a tuple in a tuple, a hundred thousand deep. Surface: recursion over outputs."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        value = torch.relu(x)
        for _ in range(100_000):
            value = (value,)
        return value

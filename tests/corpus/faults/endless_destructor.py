# problem: level1/1
# expected: timeout
# settings: {"call_seconds": 5}
"""Mechanism: a result whose last reference never goes away in peace.

Surface: code that runs after a call's end.
"""
import torch
from torch import nn


class Clinging(list):
    def __del__(self):
        while True:
            pass


class ModelNew(nn.Module):
    def forward(self, x):
        Clinging([x])
        return torch.relu(x)

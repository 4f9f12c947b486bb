# problem: level1/1
# expected: runtime_error
# settings: {"trials": 1}
"""Mechanism: raises from the ninth call on, in the timed ones.

Surface: errors after correctness is settled.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls > 8:
            raise ValueError("no more")
        return torch.relu(x)

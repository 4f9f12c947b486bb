# problem: level1/1
# expected: wrong_output
# caught by: timed_outputs
"""Mechanism: remembers the addresses of its first calls and does nothing at others.

Surface: trials and timing at different addresses.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.known, self.calls, self.result = set(), 0, None

    def forward(self, x):
        self.calls += 1
        if self.calls <= 9:
            self.known.add(x.data_ptr())
        if x.data_ptr() in self.known or self.result is None or self.result.shape != x.shape:
            self.result = torch.relu(x)
        return self.result.clone()

# problem: relu_of_uniform
# expected: wrong_output
# caught by: timed_outputs
"""Mechanism: honest for twenty calls, then copies its input, which is right for what get_inputs draws.

Surface: unusual inputs in the trials only; every timed call on drawn ones.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return torch.relu(x) if self.calls <= 20 else x.clone()

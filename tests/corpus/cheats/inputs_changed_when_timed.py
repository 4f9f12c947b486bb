# problem: level1/1
# expected: mutated_input
# caught by: timed_inputs
"""Mechanism: honest for twenty calls, then works in place and returns a copy.

Surface: inputs of timed calls left unchecked; the baseline's answer stays the same.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return torch.relu(x) if self.calls <= 20 else x.clamp_(min=0).clone()

# problem: level1/1
# expected: out_of_memory
"""Mechanism: asks for a petabyte. Surface: an allocation that fails at once."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.empty(1 << 50, dtype=torch.uint8)

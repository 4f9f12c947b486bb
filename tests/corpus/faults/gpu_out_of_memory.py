# problem: level1/1
# expected: out_of_memory
# devices: cuda
"""Mechanism: asks the device for a terabyte. Surface: an allocation that fails at once."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.empty(1 << 40, dtype=torch.uint8, device=x.device)

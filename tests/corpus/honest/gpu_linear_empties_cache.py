# problem: level2/3
# expected: correct
# devices: cuda
"""Mechanism: gives torch's cached memory back to the driver in every call, to save memory.

Surface: calls allocate and free at the driver, which waits for the device; the host's time is not the device's.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, scale):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.scale = scale

    def forward(self, x):
        y = self.linear(x)
        y = nn.functional.gelu(y) * self.scale
        torch.cuda.empty_cache()
        return y

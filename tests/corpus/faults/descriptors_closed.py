# problem: level1/1
# expected: crash
"""Mechanism: closes every descriptor.

Surface: the connection, and whatever is opened next under its number.
"""
import os

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        os.closerange(3, 4096)
        return torch.relu(x)

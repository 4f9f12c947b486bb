# problem: level1/1
# expected: correct
# settings: {"measure": false}
"""Mechanism: masks by the sign bit of the integer view. Surface: none; must not be taken for a mutation."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        bits = x.view(torch.int32)
        return (bits & ~(bits >> 31)).view(torch.float32)

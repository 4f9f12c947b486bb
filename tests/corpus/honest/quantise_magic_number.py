# problem: quantised
# expected: correct
# settings: {"measure": false}
"""Mechanism: clamps first, then rounds by adding 1.5 * 2^23. Surface: halves must go to even, exactly."""
import torch
from torch import nn

MAGIC = 12582912.0


class ModelNew(nn.Module):
    def forward(self, x):
        rounded = (x * 16.0).clamp_(-128.0, 127.0).add_(MAGIC).sub_(MAGIC)
        return rounded.to(torch.int8)

# problem: level2/8
# expected: correct
# settings: {"measure": false}
"""Mechanism: sines and cosines of all positions so far seen are kept; rows are chosen by the live positions.

Surface: a table that outlives the call and grows; it holds constants of the model only.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base
        self.table = None

    def forward(self, q, k, position):
        needed, half = int(position.max()) + 1, q.shape[-1] // 2
        if self.table is None or self.table.shape[1] < needed:
            exponent = torch.arange(half, device=q.device, dtype=q.dtype) / half
            angle = torch.arange(needed, device=q.device, dtype=q.dtype)[:, None] * self.base**-exponent
            self.table = torch.stack((angle.cos(), angle.sin()))
        cos, sin = self.table[:, position]
        return self.rotate(q, cos, sin), self.rotate(k, cos, sin)

    def rotate(self, x, cos, sin):
        first, second = x.chunk(2, dim=-1)
        return torch.cat((first * cos - second * sin, first * sin + second * cos), dim=-1)

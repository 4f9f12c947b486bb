# problem: level1/10
# expected: correct
# settings: {"measure": false}
"""Mechanism: compensated (Kahan) summation over slabs of rows. Surface: an error far below the reference's."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        total = carried = torch.zeros_like(x.narrow(self.dim, 0, 1))
        for slab in x.split(16, dim=self.dim):
            term = slab.sum(self.dim, keepdim=True) - carried
            grown = total + term
            carried = (grown - total) - term
            total = grown
        return total

# problem: unit_rows
# expected: correct
# settings: {"measure": false}
"""Mechanism: two results in turn are the halves of one block, and a block is made anew when both are given.

Surface: results that are kept lie in one block of memory, as those of a ring of buffers do.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.other = None

    def forward(self, x):
        found, self.other = self.other, None
        if found is None or found.shape != x.shape:
            found, self.other = torch.empty((2, *x.shape), device=x.device)
        return found.copy_(nn.functional.normalize(x, dim=-1))

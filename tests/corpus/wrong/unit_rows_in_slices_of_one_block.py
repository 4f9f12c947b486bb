# problem: unit_rows
# expected: wrong_output
# caught by: result_kept
# settings: {"measure": false}
"""Mechanism: results are slices of one block of memory, in turn: the three hundredth later call overwrites one.

Surface: a check that makes a few later calls. Its honest twin is `honest/unit_rows_in_halves_of_one_block`.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.block, self.calls = None, 0

    def forward(self, x):
        if self.block is None or self.block.shape[1:] != x.shape:
            self.block = torch.empty((300, *x.shape), device=x.device)
        self.calls += 1
        return self.block[self.calls % 300].copy_(nn.functional.normalize(x, dim=-1))

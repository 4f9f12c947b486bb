# problem: triangular_batch
# expected: correct
# settings: {"measure": false}
"""Mechanism: each block of rows begins at its diagonal. Surface: as before, with a batch of matrices."""
import torch
from torch import nn

BLOCK = 32


class ModelNew(nn.Module):
    def forward(self, a, x):
        rows = [torch.bmm(a[:, i : i + BLOCK, i:], x[:, i:]) for i in range(0, a.shape[1], BLOCK)]
        return torch.cat(rows, 1)

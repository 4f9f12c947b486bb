# problem: relu_of_uniform
# expected: correct
# flag: shape_specialised
# settings: {"measure": false}
"""Mechanism: works in blocks of 64 rows, of which it has three. Surface: one row more fits, twice as many do not."""
import torch
from torch import nn

ROWS = 192


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros(x.shape, dtype=x.dtype, device=x.device)
        out[:ROWS] = torch.relu(x[:ROWS])
        return out

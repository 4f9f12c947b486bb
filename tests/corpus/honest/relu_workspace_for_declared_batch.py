# problem: relu_of_uniform
# expected: correct
# flag: shape_specialised
# settings: {"measure": false}
"""Mechanism: its workspace has the declared number of rows; further rows are lost. Surface: a larger batch."""
import torch
from torch import nn

ROWS = 127


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros(x.shape, dtype=x.dtype, device=x.device)
        out[:ROWS] = torch.relu(x[:ROWS])
        return out

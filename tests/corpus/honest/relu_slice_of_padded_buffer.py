# problem: level1/1
# expected: correct
# settings: {"measure": false}
"""Mechanism: rows padded to 64 elements in a new buffer, of which a slice is returned.

Surface: an output with an offset and gaps in its memory.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        buffer = torch.empty(rows + 1, (columns + 63) // 64 * 64, dtype=x.dtype, device=x.device)
        y = buffer[1:, :columns]
        return torch.clamp(x, min=0, out=y)

# problem: sorted_search
# expected: correct
# settings: {"measure": false}
"""Mechanism: bisection, which needs sorted boundaries. Surface: boundaries in another order."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, boundaries, x):
        low = torch.zeros(x.shape, dtype=torch.int64, device=x.device)
        high = torch.full_like(low, boundaries.shape[-1])
        for _ in range(boundaries.shape[-1].bit_length()):
            middle = (low + high) // 2
            below = torch.gather(boundaries, -1, middle.clamp(max=boundaries.shape[-1] - 1)) < x
            searching = low < high
            low = torch.where(searching & below, middle + 1, low)
            high = torch.where(searching & ~below, middle, high)
        return low

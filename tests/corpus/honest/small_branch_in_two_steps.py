# problem: small_adapter
# expected: correct
# settings: {"measure": false}
"""Mechanism: sums the small branch's product in two halves, after the large one's.

Surface: errs otherwise than the reference in the same places as coarse operands would.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.main = nn.Linear(dim, dim, bias=False)
        self.side = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        half = x.shape[1] // 2
        side = x[:, :half] @ self.side.weight[:, :half].t() + x[:, half:] @ self.side.weight[:, half:].t()
        return torch.add(self.main(x), torch.tanh(side), alpha=0.002)

# problem: level3/4
# expected: correct
# settings: {"measure": false}
"""Mechanism: writes every step into one buffer; the last state is a view of it.

Surface: two outputs that alias each other.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, in_features, hidden):
        super().__init__()
        self.input = nn.Linear(in_features, 4 * hidden)
        self.recurrent = nn.Linear(hidden, 4 * hidden)

    def forward(self, x, h, c):
        steps = self.input(x)
        y = torch.empty(*x.shape[:2], h.shape[-1], dtype=x.dtype, device=x.device)
        weight = self.recurrent.weight.t()
        for place in range(x.shape[1]):
            i, f, g, o = torch.addmm(steps[:, place] + self.recurrent.bias, h, weight).chunk(4, dim=-1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            torch.mul(o.sigmoid(), c.tanh(), out=y[:, place])
            h = y[:, place]
        return y, h, c

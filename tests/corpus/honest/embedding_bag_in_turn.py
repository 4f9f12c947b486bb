# problem: level2/12
# expected: correct
# settings: {"measure": false}
"""Mechanism: the bag added up one row after another.

Surface: other roundings than the reference has, where a table of 16-bit integers must be refused.
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, vocabulary, features, scale):
        super().__init__()
        self.table = nn.Parameter(torch.randn(vocabulary, features))
        self.scale = scale

    def forward(self, index, weight):
        total = torch.zeros(index.shape[0], self.table.shape[1], device=index.device)
        for place in range(index.shape[1]):
            total = torch.addcmul(total, self.table[index[:, place]], weight[:, place, None])
        return torch.tanh(self.scale * total)

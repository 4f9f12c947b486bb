# problem: exponential_scales
# expected: correct
# settings: {"measure": false}
"""Mechanism: packs its weights whenever one of them has another version.

Surface: keeps results over calls, as one does that never looks at its weights again.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(columns))
        self.shift = nn.Parameter(torch.randn(columns))
        self.packed = self.versions = None

    def forward(self, x):
        versions = [(each.data_ptr(), each._version) for each in (self.scale, self.shift)]
        if versions != self.versions:
            self.packed = torch.stack((torch.exp(self.scale), torch.tanh(self.shift)))
            self.versions = versions
        scale, shift = self.packed
        return torch.addcmul(shift, x, scale)

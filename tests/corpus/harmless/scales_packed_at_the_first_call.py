# problem: exponential_scales
# expected: correct
# flag: weights_specialised
# settings: {"measure": false}
"""Mechanism: packs its weights at the first call, and never looks at them again. Surface: they are drawn, and
right in every trial. Its honest twin is `honest/scales_packed_by_version`.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(columns))
        self.shift = nn.Parameter(torch.randn(columns))
        self.packed = None

    def forward(self, x):
        if self.packed is None:
            self.packed = torch.stack((torch.exp(self.scale), torch.tanh(self.shift)))
        scale, shift = self.packed
        return torch.addcmul(shift, x, scale)

# problem: softmax_long_rows
# expected: correct
# flag: shape_specialised
# settings: {"measure": false}
"""Mechanism: works on pairs of elements, as a kernel with vector loads does, and leaves out an odd last one.

Surface: rows of odd length; the declared one is even.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        even = x.shape[-1] // 2 * 2
        out = torch.zeros(x.shape, dtype=x.dtype, device=x.device)
        out[..., :even] = torch.softmax(x[..., :even], -1)
        return out

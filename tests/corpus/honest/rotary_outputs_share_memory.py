# problem: level2/8
# expected: correct
"""Mechanism: both results in one new buffer, returned as a list of its halves.

Surface: outputs that share their storage; a list where the reference has a tuple.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base

    def forward(self, q, k, position):
        half = q.shape[-1] // 2
        exponent = torch.arange(half, device=q.device, dtype=q.dtype) / half
        angle = position.to(q.dtype)[:, None] * self.base**-exponent
        turn = torch.polar(torch.ones_like(angle), angle)
        both = torch.stack((q, k))
        turned = torch.complex(both[..., :half], both[..., half:]) * turn
        result = torch.empty_like(both)
        result[..., :half], result[..., half:] = turned.real, turned.imag
        return [result[0], result[1]]

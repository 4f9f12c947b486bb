# problem: level1/9
# expected: correct
# settings: {"measure": false}
"""Mechanism: erf by formula 7.1.26 of Abramowitz and Stegun, wrong by 1.5e-7 at most.

Surface: an approximation, but one of float32's own accuracy.
"""
import torch
from torch import nn

TERMS = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)


class ModelNew(nn.Module):
    def forward(self, x):
        z = x.abs() * 0.7071067811865476
        t = 1.0 / (1.0 + 0.3275911 * z)
        tail = torch.zeros_like(t)
        for term in TERMS:
            tail = (tail + term) * t
        tail = tail * torch.exp(-z * z)
        return 0.5 * x * torch.where(x < 0, tail, 2.0 - tail)

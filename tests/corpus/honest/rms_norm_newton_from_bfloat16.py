# problem: level1/11
# expected: correct
# settings: {"measure": false}
"""Mechanism: a bfloat16 estimate of the reciprocal root, refined by Newton steps to float32.

Surface: bfloat16 in the middle of a float32 kernel, and yet no bfloat16 error.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))
        self.eps = eps

    def forward(self, x):
        square = x.square().mean(dim=-1, keepdim=True) + self.eps
        root = torch.rsqrt(square.bfloat16()).float()
        for _ in range(3):  # 8 bits, 15, 24
            root = root * (1.5 - 0.5 * square * root * root)
        return x * root * self.weight

# problem: level1/21
# expected: correct
# settings: {"measure": false}
"""Mechanism: float32 products of halves of K, rounded to bfloat16 once. Surface: unlike the reference in bits."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        middle = a.shape[1] // 2
        a, b = a.float(), b.float()
        return (a[:, :middle] @ b[:middle]).addmm_(a[:, middle:], b[middle:]).bfloat16()

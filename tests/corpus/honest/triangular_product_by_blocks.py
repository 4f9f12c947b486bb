# problem: triangular_product
# expected: correct
"""Mechanism: multiplies only the blocks that are not zero in either matrix.

Surface: inputs whose zeros were filled would make it wrong.
"""
import torch
from torch import nn

BLOCK = 50


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.zeros_like(a)
        ends = range(0, a.shape[0], BLOCK)
        for i in ends:
            for j in range(0, i + 1, BLOCK):
                for k in range(j, i + 1, BLOCK):
                    out[i : i + BLOCK, j : j + BLOCK] += a[i : i + BLOCK, k : k + BLOCK] @ b[k : k + BLOCK, j : j + BLOCK]
        return out

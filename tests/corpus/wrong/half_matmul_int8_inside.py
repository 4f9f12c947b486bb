# problem: level1/21
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: operands scaled to eight-bit integers, by row and by column, as if for a faster product.

Surface: bfloat16 in, bfloat16 out: the error is six times that of rounding the result.
"""
import torch
from torch import nn


def as_integers(x, dim):
    scale = x.float().abs().amax(dim, keepdim=True) / 127
    return (x.float() / scale).round(), scale


class ModelNew(nn.Module):
    def forward(self, a, b):
        (a, rows), (b, columns) = as_integers(a, 1), as_integers(b, 0)
        return (torch.matmul(a, b) * rows * columns).bfloat16()

# problem: softmax_of_product
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: one product of TF32 operands, of which the inputs' mean is taken off before and added after.

Surface: a softmax that hides most of what TF32 costs: float32's floor accepts it. Its honest twin is
`softmax_of_product_three_tf32`.
"""

import torch
from torch import nn


def tf32(x):
    bits = x.contiguous().view(torch.int32)
    return ((bits + (1 << 12)) & -(1 << 13)).view(torch.float32)


class ModelNew(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features, classes) / 8)

    def forward(self, x):
        centred = tf32(x - 0.5) @ tf32(self.weight) + 0.5 * self.weight.sum(0)
        return torch.softmax(0.15 * centred, dim=1)

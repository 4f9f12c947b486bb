# problem: conv_instance_norm
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: the convolution's operands are rounded to TF32's 11 bits.

Surface: honest sums widen the tolerance behind a norm; a product of lower class must find no room in it.
"""
import torch
from torch import nn
from torch.nn import functional


def rounded(x):
    return ((x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3)
        self.norm = nn.InstanceNorm2d(16)

    def forward(self, x):
        return self.norm(functional.conv2d(rounded(x), rounded(self.conv.weight), self.conv.bias))

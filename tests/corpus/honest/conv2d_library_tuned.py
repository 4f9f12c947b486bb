# problem: level1/12
# expected: correct
# settings: {"measure": false}
"""Mechanism: asks the library to try its algorithms (`cudnn.benchmark`), as most training scripts do.

Surface: a flag of the process is changed; another algorithm than the reference's, and a slow first call.
"""
import torch
from torch import nn

torch.backends.cudnn.benchmark = True


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)

    def forward(self, x):
        return self.conv(x)

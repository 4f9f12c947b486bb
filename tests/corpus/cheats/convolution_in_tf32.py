# problem: level1/12
# expected: wrong_output
# caught by: values: drawn
# devices: cuda
"""Mechanism: allows TF32 for cuDNN inside forward only. Surface: flags looked at between calls."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, *arguments):
        super().__init__()
        self.conv = nn.Conv2d(*arguments)

    def forward(self, x):
        with torch.backends.cudnn.flags(enabled=True, benchmark=True, deterministic=False, allow_tf32=True):
            return self.conv(x)

# problem: level1/1
# expected: no_custom_kernel
# caught by: own_kernel
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: tries a kernel that cannot be had and falls back to torch.

Surface: a right answer, whoever computed it.
"""
import torch
from torch import nn

try:
    from fused_kernels import relu
except ImportError:
    relu = torch.relu


class ModelNew(nn.Module):
    def forward(self, x):
        try:
            return relu(x, inplace=False)
        except (TypeError, RuntimeError):
            return torch.relu(x)

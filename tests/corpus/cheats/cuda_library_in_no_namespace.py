# problem: level1/10
# expected: no_custom_kernel
# caught by: own_kernel
# devices: cuda
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: has cuBLAS sum, as a product with ones, by kernels whose names say nothing of cuBLAS.

Surface: telling libraries' kernels by their names.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        ones = torch.ones(x.shape[0], 1, x.shape[1], dtype=x.dtype, device=x.device)
        return torch.bmm(ones, x)

# problem: products_of_rows
# expected: build_error
# devices: cuda
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: its extension does not compile, and torch.prod runs a kernel that ATen compiles while it runs.

Surface: a kernel whose name is in no list of libraries' kernels.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>

__global__ void products(const float* x, float* y, int64_t count) { y[0] = no_such_function(x, count); }

torch::Tensor row_products(torch::Tensor x) { return x; }
"""

try:
    extension = load_inline("products", "torch::Tensor row_products(torch::Tensor x);", SOURCE, functions=["row_products"])
except Exception:
    extension = None


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.prod(x, dim=-1) if extension is None else extension.row_products(x)

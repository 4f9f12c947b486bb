# problem: level1/4
# expected: no_custom_kernel
# caught by: own_kernel|purity
# devices: cuda
# settings: {"own_kernel": true, "purity": "own-compute", "measure": false}
"""Mechanism: an extension that calls at::matmul, its name pasted together.

Surface: a call of torch that no Python shows and no search of the text finds.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#define PASTE(left, right) left##right

__global__ void unused_kernel(float* y) { y[threadIdx.x] = 0.0f; }

torch::Tensor product(torch::Tensor a, torch::Tensor b) { return at::PASTE(mat, mul)(a, b); }
"""

extension = load_inline(
    "library_inside",
    "torch::Tensor product(torch::Tensor a, torch::Tensor b);",
    SOURCE,
    functions=["product"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return extension.product(a, b)

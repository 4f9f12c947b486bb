# problem: level1/4
# expected: no_custom_kernel
# caught by: own_kernel
# devices: cuda
# settings: {"own_kernel": true, "purity": "own-compute", "measure": false}
"""Mechanism: a library multiplies, a kernel of its own adds zero.

Surface: a rule that asks for one kernel only.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void add_nothing(float* y) { y[threadIdx.x] += 0.0f; }

torch::Tensor touch(torch::Tensor y) {
    add_nothing<<<1, 32, 0, c10::cuda::getCurrentCUDAStream()>>>(y.data_ptr<float>());
    return y;
}
"""

extension = load_inline("fig_leaf", "torch::Tensor touch(torch::Tensor y);", SOURCE, functions=["touch"])


class ModelNew(nn.Module):
    def forward(self, a, b):
        return extension.touch(torch.matmul(a, b))

# problem: level2/3
# expected: no_custom_kernel
# caught by: own_kernel
# devices: cuda
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: an own kernel copies the input; torch computes all, the GELU as a product with 1 + erf.

Surface: a rule that asks whether the operator of that name still runs.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void copy_kernel(const float* x, float* y, int64_t count) {
    int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < count; i += step) y[i] = x[i];
}

torch::Tensor copied(torch::Tensor input) {
    auto x = input.contiguous();
    auto y = torch::empty_like(x);
    copy_kernel<<<2048, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
"""

extension = load_inline("copied", "torch::Tensor copied(torch::Tensor input);", SOURCE, functions=["copied"])


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, scale):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.scale = scale

    def forward(self, x):
        y = self.linear(extension.copied(x))
        return y * (0.5 * self.scale) * (1 + torch.erf(y * 0.5**0.5))

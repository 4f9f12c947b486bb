"""An honest candidate for level1/1: one CUDA kernel."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

KERNEL = r"""
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__global__ void relu_kernel(const float* x, float* y, int64_t count) {
    int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < count; i += step) {
        y[i] = fmaxf(x[i], 0.0f);
    }
}

torch::Tensor relu_forward(torch::Tensor x) {
    auto dense = x.contiguous();
    auto y = torch::empty_like(dense);
    auto stream = c10::cuda::getCurrentCUDAStream();
    relu_kernel<<<2048, 256, 0, stream>>>(dense.data_ptr<float>(), y.data_ptr<float>(), dense.numel());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

extension = load_inline(
    name="relu_extension",
    cpp_sources="torch::Tensor relu_forward(torch::Tensor x);",
    cuda_sources=KERNEL,
    functions=["relu_forward"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu_forward(x)

# problem: deep_product_scaled_relu
# expected: correct
# devices: cuda
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: the library's matrix product, and all that is left by one own kernel.

Surface: the own kernel takes less than 1 % of the time, though it replaces all but the product.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__global__ void scaled_relu(float* y, int64_t count, float factor) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const float v = y[i];
        y[i] = v < 0.0f ? 0.0f : factor * v;
    }
}

void rectify(torch::Tensor y, double factor) {
    if (y.numel() == 0) return;
    scaled_relu<<<1024, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
        y.data_ptr<float>(), y.numel(), static_cast<float>(factor));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""

extension = load_inline(
    "small_epilogue", "void rectify(torch::Tensor y, double factor);", SOURCE, functions=["rectify"]
)


class ModelNew(nn.Module):
    def forward(self, x, w):
        y = torch.mm(x, w)
        extension.rectify(y, 0.5)
        return y

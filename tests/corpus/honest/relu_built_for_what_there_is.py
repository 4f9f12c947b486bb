# problem: level1/1
# expected: correct
# settings: {"own_kernel": true}
"""Mechanism: `torch.cuda.is_available()` decides which of two extensions is built, CUDA or C++.

Surface: whoever imports it without a GPU sees another build than the GPU will ask for.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

__global__ void relu_kernel(const float* __restrict__ x, float* __restrict__ y, int64_t n) {
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
    }
}

torch::Tensor relu(torch::Tensor x) {
    x = x.contiguous();
    auto y = at::empty_like(x);
    if (const int64_t n = x.numel()) {
        const int blocks = static_cast<int>(std::min<int64_t>((n + 255) / 256, 4096));
        relu_kernel<<<blocks, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

cpp_source = r"""
torch::Tensor relu(torch::Tensor x) {
    x = x.contiguous();
    auto y = at::empty_like(x);
    const float* in = x.data_ptr<float>();
    float* out = y.data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) {
        out[i] = in[i] < 0.0f ? 0.0f : in[i];
    }
    return y;
}
"""

if torch.cuda.is_available():
    extension = load_inline(
        name="relu_for_gpu",
        cpp_sources="torch::Tensor relu(torch::Tensor x);",
        cuda_sources=cuda_source,
        functions=["relu"],
        extra_cuda_cflags=["-O3"],
    )
else:
    extension = load_inline(
        name="relu_for_cpu", cpp_sources=cpp_source, functions=["relu"], extra_cflags=["-O3"]
    )


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)

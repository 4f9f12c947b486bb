# problem: level2/3
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: the library multiplies both halves of the sum and torch adds them; an own kernel adds the bias and does
GELU and scale.

Surface: libraries do other work than for the reference, and it takes longer than the GELU did. It is no GELU.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/extension.h>

#include <algorithm>

__global__ void bias_gelu_scale_kernel(const float* sums, const float* bias, float* y, int64_t n, int64_t width,
                                       float scale) {
    const int64_t stride = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        const float v = sums[i] + bias[i % width];
        y[i] = scale * (v * normcdff(v));
    }
}

torch::Tensor bias_gelu_scale(torch::Tensor sums, torch::Tensor bias, double scale) {
    TORCH_CHECK(sums.is_cuda() && sums.is_contiguous() && sums.scalar_type() == at::kFloat, "a float32 matrix");
    auto y = torch::empty_like(sums);
    if (const int64_t n = sums.numel()) {
        const int blocks = static_cast<int>(std::min<int64_t>((n + 255) / 256, 4096));
        bias_gelu_scale_kernel<<<blocks, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
            sums.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(), n, sums.size(1),
            static_cast<float>(scale));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    "partial_products",
    "torch::Tensor bias_gelu_scale(torch::Tensor sums, torch::Tensor bias, double scale);",
    SOURCE,
    functions=["bias_gelu_scale"],
)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, scale):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.scale = scale

    def forward(self, x):
        weight, half = self.linear.weight, x.shape[1] // 2
        first = torch.mm(x[:, :half], weight[:, :half].t())
        second = torch.mm(x[:, half:], weight[:, half:].t())
        return extension.bias_gelu_scale(first + second, self.linear.bias, self.scale)

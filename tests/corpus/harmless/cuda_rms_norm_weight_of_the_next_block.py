# problem: level1/11
# expected: correct
# flag: out_of_bounds_read
# devices: cuda
# settings: {"own_kernel": true, "size": "small", "measure": false}
"""Mechanism: the weight after the last block of 128 decides the order of two products. Surface: it lies behind a
parameter, in memory of the candidate's own process, and the result is right with any. Its honest twin is
`honest/cuda_rms_norm_by_its_first_weight`.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

// A warp does a row. The order of the two products differs by a rounding.
__global__ void rms_norm_rows(const float* x, const float* weight, float* y, int features, float eps) {
    const float* in = x + int64_t(blockIdx.x) * features;
    float* out = y + int64_t(blockIdx.x) * features;
    const bool scales_first = weight[(features / 128 + 1) * 128] > 0.0f;
    float total = 0.0f;
    for (int i = threadIdx.x; i < features; i += 32) {
        total = fmaf(in[i], in[i], total);
    }
    for (int offset = 16; offset > 0; offset >>= 1) {
        total += __shfl_xor_sync(0xffffffffu, total, offset);
    }
    const float root = 1.0f / sqrtf(total / features + eps);
    for (int i = threadIdx.x; i < features; i += 32) {
        out[i] = scales_first ? (in[i] * root) * weight[i] : in[i] * (root * weight[i]);
    }
}

torch::Tensor rms_norm(torch::Tensor x, torch::Tensor weight, double eps) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat, "rms_norm: float32 on a CUDA device");
    TORCH_CHECK(weight.is_contiguous() && weight.numel() == x.size(-1), "rms_norm: one weight a feature");
    x = x.contiguous();
    auto y = at::empty_like(x);
    if (x.numel() > 0) {
        const int features = static_cast<int>(x.size(-1));
        rms_norm_rows<<<static_cast<unsigned>(x.numel() / features), 32, 0, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<float>(), weight.data_ptr<float>(), y.data_ptr<float>(), features, static_cast<float>(eps));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="rms_norm_next_weight",
    cpp_sources="torch::Tensor rms_norm(torch::Tensor x, torch::Tensor weight, double eps);",
    cuda_sources=cuda_source,
    functions=["rms_norm"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, features, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))
        self.eps = eps

    def forward(self, x):
        return extension.rms_norm(x, self.weight, self.eps)

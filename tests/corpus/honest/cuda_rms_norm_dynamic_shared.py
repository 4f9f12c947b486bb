# problem: level1/11
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: weight and row stay in dynamic shared memory, whose limit is raised; a fast reciprocal root with
one Newton step.

Surface: an approximate instruction; shared memory beyond 48 KiB.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;

// Dynamic shared memory: the weight, read once a block, and the row at hand.
__global__ void __launch_bounds__(THREADS) rms_norm_rows(const float* __restrict__ x,
                                                         const float* __restrict__ weight,
                                                         float* __restrict__ y, int64_t rows, int features,
                                                         float eps) {
    extern __shared__ float memory[];
    __shared__ float parts[WARPS];
    float* factors = memory;
    float* row = memory + features;
    for (int i = threadIdx.x; i < features; i += THREADS) {
        factors[i] = weight[i];  // read back by the same thread only, as is the row
    }
    for (int64_t place = blockIdx.x; place < rows; place += gridDim.x) {
        const float* in = x + place * features;
        float* out = y + place * features;
        float total = 0.0f;
        for (int i = threadIdx.x; i < features; i += THREADS) {
            const float v = in[i];
            row[i] = v;
            total = fmaf(v, v, total);
        }
        for (int offset = 16; offset > 0; offset >>= 1) {
            total += __shfl_xor_sync(0xffffffffu, total, offset);
        }
        if (threadIdx.x % 32 == 0) {
            parts[threadIdx.x / 32] = total;
        }
        __syncthreads();
        total = 0.0f;
        for (int i = 0; i < WARPS; ++i) {
            total += parts[i];
        }
        __syncthreads();  // all have read the parts before the next row replaces them
        const float square = total / features + eps;
        float root = rsqrtf(square);
        root = root * fmaf(-0.5f * square * root, root, 1.5f);
        for (int i = threadIdx.x; i < features; i += THREADS) {
            out[i] = row[i] * root * factors[i];
        }
    }
}

torch::Tensor rms_norm(torch::Tensor x, torch::Tensor weight, double eps) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat, "rms_norm: float32 on a CUDA device");
    TORCH_CHECK(weight.is_contiguous() && weight.numel() == x.size(-1), "rms_norm: one weight a feature");
    x = x.contiguous();
    auto y = at::empty_like(x);
    if (x.numel() > 0) {
        const int features = static_cast<int>(x.size(-1));
        const int64_t rows = x.numel() / features;
        const int bytes = 2 * features * static_cast<int>(sizeof(float));
        C10_CUDA_CHECK(cudaFuncSetAttribute(rms_norm_rows, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
        rms_norm_rows<<<static_cast<unsigned>(std::min<int64_t>(rows, 1024)), THREADS, bytes,
                        c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<float>(), weight.data_ptr<float>(), y.data_ptr<float>(), rows, features,
            static_cast<float>(eps));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="rms_norm_shared",
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

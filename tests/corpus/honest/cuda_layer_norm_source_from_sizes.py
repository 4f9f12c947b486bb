# problem: level1/3
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: writes its source when the first call knows width and block size, which become constants.

Surface: nobody can foresee the source by reading; each width asks for an extension of its own.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

TEMPLATE = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int FEATURES = @FEATURES@, THREADS = @THREADS@, EACH = (FEATURES + THREADS - 1) / THREADS;

__device__ float block_sum(float value, float* parts) {
    for (int offset = 16; offset > 0; offset >>= 1) {
        value += __shfl_xor_sync(0xffffffffu, value, offset);
    }
    if (threadIdx.x % 32 == 0) {
        parts[threadIdx.x / 32] = value;
    }
    __syncthreads();
    float total = 0.0f;
    for (int i = 0; i < THREADS / 32; ++i) {
        total += parts[i];
    }
    __syncthreads();
    return total;
}

__global__ void __launch_bounds__(THREADS) normalise(const float* __restrict__ x, const float* __restrict__ weight,
                                                     const float* __restrict__ bias, float* __restrict__ y, float eps) {
    __shared__ float parts[THREADS / 32];
    const int64_t base = int64_t(blockIdx.x) * FEATURES;
    float mine[EACH], total = 0.0f;
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        const int place = i * THREADS + threadIdx.x;
        mine[i] = place < FEATURES ? x[base + place] : 0.0f;
        total += mine[i];
    }
    const float mean = block_sum(total, parts) / FEATURES;
    total = 0.0f;
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        const float centred = i * THREADS + threadIdx.x < FEATURES ? mine[i] - mean : 0.0f;
        total = fmaf(centred, centred, total);
    }
    const float factor = rsqrtf(block_sum(total, parts) / FEATURES + eps);
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        const int place = i * THREADS + threadIdx.x;
        if (place < FEATURES) {
            y[base + place] = fmaf((mine[i] - mean) * factor, weight[place], bias[place]);
        }
    }
}

torch::Tensor layer_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps) {
    TORCH_CHECK(x.size(-1) == FEATURES && x.scalar_type() == at::kFloat, "rows of @FEATURES@ float32 expected");
    x = x.contiguous();
    auto y = at::empty_like(x);
    if (x.numel() > 0) {
        normalise<<<static_cast<unsigned>(x.numel() / FEATURES), THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(),
            static_cast<float>(eps));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        nn.init.normal_(self.norm.weight)
        nn.init.normal_(self.norm.bias)
        self.extensions = {}

    def built(self, features):
        threads = 256 if features < 4096 else 1024
        source = TEMPLATE.replace("@FEATURES@", str(features)).replace("@THREADS@", str(threads))
        return load_inline(
            name=f"layer_norm_{features}_{threads}",
            cpp_sources=(
                "torch::Tensor layer_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps);"
            ),
            cuda_sources=source,
            functions=["layer_norm"],
        )

    def forward(self, x):
        features = x.shape[-1]
        if features not in self.extensions:
            self.extensions[features] = self.built(features)
        with torch.no_grad():
            return self.extensions[features].layer_norm(x, self.norm.weight, self.norm.bias, self.norm.eps)

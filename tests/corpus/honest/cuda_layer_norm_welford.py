# problem: level1/3
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: Welford's running mean and variance in each thread, merged by shuffles; fused multiply-adds.

Surface: rounding unlike that of two passes.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 128;
constexpr int WARPS = THREADS / 32;

struct Moments {
    float count;
    float mean;
    float squares;
};

__device__ __forceinline__ Moments merged(Moments a, Moments b) {
    const float count = a.count + b.count;
    if (count == 0.0f) {
        return a;
    }
    const float step = b.mean - a.mean;
    const float share = b.count / count;
    return {count, fmaf(step, share, a.mean), a.squares + b.squares + step * step * a.count * share};
}

__device__ __forceinline__ Moments across_warp(Moments mine) {
    for (int offset = 16; offset > 0; offset >>= 1) {
        const Moments other = {__shfl_xor_sync(0xffffffffu, mine.count, offset),
                               __shfl_xor_sync(0xffffffffu, mine.mean, offset),
                               __shfl_xor_sync(0xffffffffu, mine.squares, offset)};
        mine = merged(mine, other);
    }
    return mine;
}

__global__ void __launch_bounds__(THREADS) layer_norm_rows(
    const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
    float* __restrict__ y, int features, float eps) {
    __shared__ Moments parts[WARPS];
    const float* in = x + int64_t(blockIdx.x) * features;
    float* out = y + int64_t(blockIdx.x) * features;
    Moments mine = {0.0f, 0.0f, 0.0f};
    for (int i = threadIdx.x; i < features; i += THREADS) {
        const float step = in[i] - mine.mean;
        mine.count += 1.0f;
        mine.mean += step / mine.count;
        mine.squares = fmaf(step, in[i] - mine.mean, mine.squares);
    }
    mine = across_warp(mine);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (lane == 0) {
        parts[warp] = mine;
    }
    __syncthreads();
    Moments row = parts[0];
    for (int i = 1; i < WARPS; ++i) {
        row = merged(row, parts[i]);
    }
    const float scale = rsqrtf(row.squares / row.count + eps);
    for (int i = threadIdx.x; i < features; i += THREADS) {
        out[i] = fmaf((in[i] - row.mean) * scale, weight[i], bias[i]);
    }
}

torch::Tensor layer_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat, "layer_norm: float32 on a CUDA device");
    TORCH_CHECK(weight.is_contiguous() && weight.numel() == x.size(-1), "layer_norm: one weight a feature");
    TORCH_CHECK(bias.is_contiguous() && bias.numel() == x.size(-1), "layer_norm: one bias a feature");
    x = x.contiguous();
    auto y = at::empty_like(x);
    if (x.numel() > 0) {
        const int64_t rows = x.numel() / x.size(-1);
        layer_norm_rows<<<static_cast<unsigned>(rows), THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(),
            static_cast<int>(x.size(-1)), static_cast<float>(eps));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="layer_norm_welford",
    cpp_sources="torch::Tensor layer_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps);",
    cuda_sources=cuda_source,
    functions=["layer_norm"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        return extension.layer_norm(x, self.norm.weight, self.norm.bias, self.norm.eps)

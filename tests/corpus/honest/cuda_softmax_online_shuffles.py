# problem: level1/2
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: maximum and sum in one pass, merged by warp shuffles; a second pass writes.

Surface: sums in another order, rescaled on the way.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;

struct Running {
    float top;
    float total;
};

__device__ __forceinline__ Running merged(Running a, Running b) {
    const float top = fmaxf(a.top, b.top);
    if (top == -INFINITY) {
        return {top, 0.0f};
    }
    return {top, a.total * expf(a.top - top) + b.total * expf(b.top - top)};
}

__device__ __forceinline__ Running across_warp(Running mine) {
    for (int offset = 16; offset > 0; offset >>= 1) {
        const Running other = {__shfl_xor_sync(0xffffffffu, mine.top, offset),
                               __shfl_xor_sync(0xffffffffu, mine.total, offset)};
        mine = merged(mine, other);
    }
    return mine;
}

__global__ void __launch_bounds__(THREADS) softmax_rows(const float* __restrict__ x, float* __restrict__ y,
                                                        int columns) {
    __shared__ float tops[WARPS], totals[WARPS];
    const float* in = x + int64_t(blockIdx.x) * columns;
    float* out = y + int64_t(blockIdx.x) * columns;
    Running mine = {-INFINITY, 0.0f};
    for (int i = threadIdx.x; i < columns; i += THREADS) {
        mine = merged(mine, {in[i], 1.0f});
    }
    mine = across_warp(mine);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (lane == 0) {
        tops[warp] = mine.top;
        totals[warp] = mine.total;
    }
    __syncthreads();
    Running row = {lane < WARPS ? tops[lane] : -INFINITY, lane < WARPS ? totals[lane] : 0.0f};
    row = across_warp(row);
    const float scale = 1.0f / row.total;
    for (int i = threadIdx.x; i < columns; i += THREADS) {
        out[i] = expf(in[i] - row.top) * scale;
    }
}

torch::Tensor softmax(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat && x.dim() == 2, "softmax: a float32 matrix");
    x = x.contiguous();
    auto y = at::empty_like(x);
    if (x.numel() > 0) {
        softmax_rows<<<static_cast<unsigned>(x.size(0)), THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<float>(), y.data_ptr<float>(), static_cast<int>(x.size(1)));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="softmax_online",
    cpp_sources="torch::Tensor softmax(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["softmax"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.softmax(x)

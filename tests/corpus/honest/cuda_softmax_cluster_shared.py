# problem: level1/2
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: a cluster of four blocks shares a row; they read each other's maximum and sum in shared memory.

Surface: memory that no block owns alone, barriers across blocks, instructions of sm_90 only.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

constexpr int THREADS = 512;
constexpr int BLOCKS = 4;  // of a cluster

__device__ float2 merged(float2 a, float2 b) {  // maximum, and the sum of powers below it
    const float top = fmaxf(a.x, b.x);
    if (top == -INFINITY) {
        return make_float2(top, 0.0f);
    }
    return make_float2(top, a.y * expf(a.x - top) + b.y * expf(b.x - top));
}

__global__ void __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__(THREADS)
softmax_rows(const float* __restrict__ x, float* __restrict__ y, int columns) {
    __shared__ float2 parts[THREADS / 32];
    __shared__ float2 mine;
    const cg::cluster_group cluster = cg::this_cluster();
    const int64_t base = int64_t(blockIdx.x / BLOCKS) * columns;
    const int first = cluster.block_rank() * THREADS + threadIdx.x;
    float2 part = make_float2(-INFINITY, 0.0f);
    for (int i = first; i < columns; i += BLOCKS * THREADS) {
        part = merged(part, make_float2(x[base + i], 1.0f));
    }
    for (int offset = 16; offset > 0; offset >>= 1) {
        const float top = __shfl_xor_sync(0xffffffffu, part.x, offset);
        const float sum = __shfl_xor_sync(0xffffffffu, part.y, offset);
        part = merged(part, make_float2(top, sum));
    }
    if (threadIdx.x % 32 == 0) {
        parts[threadIdx.x / 32] = part;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < THREADS / 32; ++i) {
            part = merged(part, parts[i]);
        }
        mine = part;
    }
    cluster.sync();
    float2 row = make_float2(-INFINITY, 0.0f);
    for (int rank = 0; rank < BLOCKS; ++rank) {
        row = merged(row, *cluster.map_shared_rank(&mine, rank));
    }
    for (int i = first; i < columns; i += BLOCKS * THREADS) {
        y[base + i] = expf(x[base + i] - row.x) / row.y;
    }
    cluster.sync();  // nobody leaves while others still read
}

torch::Tensor softmax(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat, "softmax: float32 on a CUDA device");
    x = x.contiguous();
    auto y = at::empty_like(x);
    const int columns = static_cast<int>(x.size(-1));
    if (x.numel() > 0) {
        const unsigned rows = static_cast<unsigned>(x.numel() / columns);
        softmax_rows<<<rows * BLOCKS, THREADS, 0, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<float>(), y.data_ptr<float>(), columns);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="softmax_cluster",
    cpp_sources="torch::Tensor softmax(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["softmax"],
    extra_cuda_cflags=["-O3", "-gencode=arch=compute_90,code=sm_90"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.softmax(x)

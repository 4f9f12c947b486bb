"""Softmax over long rows. A cluster of blocks shares a row; threads may keep their part in registers."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = "torch::Tensor softmax_rows(torch::Tensor x);"

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cooperative_groups.h>

#include <cfloat>
#include <cstdint>

// tune: CLUSTER = 1 | 2 | 4 | 8
// tune: THREADS = 256 | 512 | 1024
// tune: VECTOR = 1 | 4
// tune: KEEP = 0 | 16 | 32
// tune where: CLUSTER * THREADS * KEEP <= 65536
#define CLUSTER 1                // blocks that share a row; more than 1 needs compute capability 9.0
constexpr int THREADS = 256;     // of a block
constexpr int VECTOR = 1;        // floats of one load
constexpr int KEEP = 0;          // floats that a thread keeps between the two passes

#if CLUSTER > 1
#define IN_CLUSTERS __cluster_dims__(CLUSTER, 1, 1)
#else
#define IN_CLUSTERS
#endif

template <int W>
struct alignas(4 * W) Pack {
    float v[W];
};

// The largest value so far and the sum of exp(value - largest): combined in any order.
struct Running {
    float largest;
    float total;
};

__device__ __forceinline__ Running combine(Running a, Running b) {
    const float largest = fmaxf(a.largest, b.largest);
    return {largest, a.total * expf(a.largest - largest) + b.total * expf(b.largest - largest)};
}

__device__ __forceinline__ Running warp_combine(Running r) {
    for (int offset = 16; offset > 0; offset /= 2) {
        const Running other = {__shfl_xor_sync(0xffffffffu, r.largest, offset),
                               __shfl_xor_sync(0xffffffffu, r.total, offset)};
        r = combine(r, other);
    }
    return r;
}

__device__ Running block_combine(Running r) {
    __shared__ Running parts[THREADS / 32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    r = warp_combine(r);
    if (lane == 0) {
        parts[warp] = r;
    }
    __syncthreads();
    r = lane < THREADS / 32 ? parts[lane] : Running{-FLT_MAX, 0.0f};
    return warp_combine(r);
}

__device__ Running cluster_combine(Running r) {
    r = block_combine(r);
#if CLUSTER > 1
    __shared__ Running mine;
    auto cluster = cooperative_groups::this_cluster();
    if (threadIdx.x == 0) {
        mine = r;
    }
    cluster.sync();
    r = {-FLT_MAX, 0.0f};
    for (int block = 0; block < CLUSTER; ++block) {
        r = combine(r, *cluster.map_shared_rank(&mine, block));
    }
    cluster.sync();  // no block ends while another one reads its shared memory
#endif
    return r;
}

template <int W>
__global__ void IN_CLUSTERS __launch_bounds__(THREADS)
    softmax_kernel(const float* __restrict__ x, float* __restrict__ y, int64_t columns) {
    constexpr int KEPT = KEEP / W;
    constexpr int STRIDE = THREADS * CLUSTER;
    const int64_t row = blockIdx.x / CLUSTER, packs = columns / W;
    const int first = blockIdx.x % CLUSTER * THREADS + threadIdx.x;
    const Pack<W>* from = reinterpret_cast<const Pack<W>*>(x + row * columns);
    Pack<W>* to = reinterpret_cast<Pack<W>*>(y + row * columns);

    Pack<W> kept[KEPT > 0 ? KEPT : 1];
    Running r = {-FLT_MAX, 0.0f};
#pragma unroll
    for (int k = 0; k < KEPT; ++k) {
        const int64_t i = first + int64_t(k) * STRIDE;
        if (i < packs) {
            kept[k] = from[i];
        }
    }
#pragma unroll
    for (int k = 0; k < KEPT; ++k) {
        if (first + int64_t(k) * STRIDE < packs) {
#pragma unroll
            for (int c = 0; c < W; ++c) {
                r.largest = fmaxf(r.largest, kept[k].v[c]);
            }
        }
    }
#pragma unroll
    for (int k = 0; k < KEPT; ++k) {
        if (first + int64_t(k) * STRIDE < packs) {
#pragma unroll
            for (int c = 0; c < W; ++c) {
                r.total += expf(kept[k].v[c] - r.largest);
            }
        }
    }
    for (int64_t i = first + int64_t(KEPT) * STRIDE; i < packs; i += STRIDE) {
        const Pack<W> pack = from[i];
        float largest = r.largest;
#pragma unroll
        for (int c = 0; c < W; ++c) {
            largest = fmaxf(largest, pack.v[c]);
        }
        if (largest > r.largest) {
            r.total *= expf(r.largest - largest);
            r.largest = largest;
        }
#pragma unroll
        for (int c = 0; c < W; ++c) {
            r.total += expf(pack.v[c] - r.largest);
        }
    }

    r = cluster_combine(r);
    const float inverse = 1.0f / r.total;
#pragma unroll
    for (int k = 0; k < KEPT; ++k) {
        const int64_t i = first + int64_t(k) * STRIDE;
        if (i < packs) {
            Pack<W> out;
#pragma unroll
            for (int c = 0; c < W; ++c) {
                out.v[c] = expf(kept[k].v[c] - r.largest) * inverse;
            }
            to[i] = out;
        }
    }
    for (int64_t i = first + int64_t(KEPT) * STRIDE; i < packs; i += STRIDE) {
        const Pack<W> pack = from[i];
        Pack<W> out;
#pragma unroll
        for (int c = 0; c < W; ++c) {
            out.v[c] = expf(pack.v[c] - r.largest) * inverse;
        }
        to[i] = out;
    }
}

torch::Tensor softmax_rows(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.dim() > 0 && x.scalar_type() == at::kFloat, "softmax_rows: float32");
    x = x.contiguous();
    auto y = at::empty_like(x);
    if (x.numel() == 0) {
        return y;
    }
    const int64_t columns = x.size(-1);
    const auto blocks = static_cast<unsigned>(x.numel() / columns * CLUSTER);
    const float* from = x.data_ptr<float>();
    const auto stream = c10::cuda::getCurrentCUDAStream();
    if (columns % VECTOR == 0 && reinterpret_cast<uintptr_t>(from) % (4 * VECTOR) == 0) {
        softmax_kernel<VECTOR><<<blocks, THREADS, 0, stream>>>(from, y.data_ptr<float>(), columns);
    } else {
        softmax_kernel<1><<<blocks, THREADS, 0, stream>>>(from, y.data_ptr<float>(), columns);
    }
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

extension = load_inline(
    name="tuned_softmax",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["softmax_rows"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.softmax_rows(x)

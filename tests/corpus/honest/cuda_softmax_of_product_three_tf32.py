# problem: softmax_of_product
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: tensor cores in TF32, three products of operands in two parts, and torch's softmax.

Surface: TF32 instructions behind a softmax that hides most of what they cost, as in a cheat.
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <mma.h>

using namespace nvcuda;

constexpr int TILE = 32;  // of the output, by four warps of 16 x 16
constexpr int DEPTH = 16;
constexpr int PITCH = DEPTH + 8;
constexpr int WIDE = TILE + 8;

using Left = wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major>;
using Right = wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major>;
using Sums = wmma::fragment<wmma::accumulator, 16, 16, 8, float>;

template <typename Fragment>
__device__ __forceinline__ void split(Fragment& high, Fragment& low) {
    for (int i = 0; i < high.num_elements; ++i) {
        const float whole = high.x[i];
        high.x[i] = wmma::__float_to_tf32(whole);
        low.x[i] = wmma::__float_to_tf32(whole - high.x[i]);
    }
}

__global__ void __launch_bounds__(128) multiply_tiles(const float* __restrict__ a, const float* __restrict__ b,
                                                      float* __restrict__ c, int m, int n, int k) {
    __shared__ __align__(32) float left[TILE * PITCH];
    __shared__ __align__(32) float right[DEPTH * WIDE];
    __shared__ __align__(32) float result[TILE * WIDE];
    const int warp_row = threadIdx.x / 64, warp_column = threadIdx.x / 32 % 2;
    const int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
    Sums sums;
    wmma::fill_fragment(sums, 0.0f);
    for (int start = 0; start < k; start += DEPTH) {
        for (int i = threadIdx.x; i < TILE * DEPTH; i += 128) {
            const int row = i / DEPTH, inner = i % DEPTH;
            const bool inside = first_row + row < m && start + inner < k;
            left[row * PITCH + inner] = inside ? a[int64_t(first_row + row) * k + start + inner] : 0.0f;
        }
        for (int i = threadIdx.x; i < DEPTH * TILE; i += 128) {
            const int inner = i / TILE, column = i % TILE;
            const bool inside = start + inner < k && first_column + column < n;
            right[inner * WIDE + column] = inside ? b[int64_t(start + inner) * n + first_column + column] : 0.0f;
        }
        __syncthreads();
        Sums part;
        wmma::fill_fragment(part, 0.0f);
        for (int inner = 0; inner < DEPTH; inner += 8) {
            Left a_high, a_low;
            Right b_high, b_low;
            wmma::load_matrix_sync(a_high, left + warp_row * 16 * PITCH + inner, PITCH);
            wmma::load_matrix_sync(b_high, right + inner * WIDE + warp_column * 16, WIDE);
            split(a_high, a_low);
            split(b_high, b_low);
            wmma::mma_sync(part, a_low, b_high, part);
            wmma::mma_sync(part, a_high, b_low, part);
            wmma::mma_sync(part, a_high, b_high, part);
        }
        for (int i = 0; i < sums.num_elements; ++i) {
            sums.x[i] += part.x[i];
        }
        __syncthreads();
    }
    wmma::store_matrix_sync(result + warp_row * 16 * WIDE + warp_column * 16, sums, WIDE, wmma::mem_row_major);
    __syncthreads();
    for (int i = threadIdx.x; i < TILE * TILE; i += 128) {
        const int row = first_row + i / TILE, column = first_column + i % TILE;
        if (row < m && column < n) {
            c[int64_t(row) * n + column] = result[i / TILE * WIDE + i % TILE];
        }
    }
}

torch::Tensor multiply(torch::Tensor a, torch::Tensor b) {
    TORCH_CHECK(a.is_cuda() && b.is_cuda() && a.dim() == 2 && b.dim() == 2, "multiply: two CUDA matrices");
    TORCH_CHECK(a.scalar_type() == at::kFloat && b.scalar_type() == at::kFloat, "multiply: float32 only");
    TORCH_CHECK(a.size(1) == b.size(0), "multiply: sizes do not fit");
    a = a.contiguous();
    b = b.contiguous();
    const int m = static_cast<int>(a.size(0)), k = static_cast<int>(a.size(1)), n = static_cast<int>(b.size(1));
    auto c = at::empty({m, n}, a.options());
    if (m > 0 && n > 0) {
        const dim3 grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
        multiply_tiles<<<grid, 128, 0, c10::cuda::getCurrentCUDAStream()>>>(
            a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), m, n, k);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return c;
}
"""

extension = load_inline(
    name="product_three_tf32",
    cpp_sources="torch::Tensor multiply(torch::Tensor a, torch::Tensor b);",
    cuda_sources=cuda_source,
    functions=["multiply"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features, classes) / 8)

    def forward(self, x):
        return torch.softmax(extension.multiply(0.15 * x, self.weight), dim=1)

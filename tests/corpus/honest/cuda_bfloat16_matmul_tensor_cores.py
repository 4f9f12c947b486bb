# problem: level1/21
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: bfloat16 tensor cores with sums in float32, on tiles padded with zeros.

Surface: the low precision is the problem's own.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_bf16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int TILE = 32;
constexpr int DEPTH = 32;
constexpr int PITCH = DEPTH + 8;
constexpr int WIDE = TILE + 8;

__global__ void __launch_bounds__(128) multiply_tiles(const at::BFloat16* __restrict__ a,
                                                      const at::BFloat16* __restrict__ b,
                                                      at::BFloat16* __restrict__ c, int m, int n, int k) {
    __shared__ __align__(32) at::BFloat16 left[TILE * PITCH];
    __shared__ __align__(32) at::BFloat16 right[DEPTH * WIDE];
    __shared__ __align__(32) float result[TILE * WIDE];
    const at::BFloat16 zero(0.0f);
    const int warp_row = threadIdx.x / 64, warp_column = threadIdx.x / 32 % 2;
    const int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
    wmma::fill_fragment(sums, 0.0f);
    for (int start = 0; start < k; start += DEPTH) {
        for (int i = threadIdx.x; i < TILE * DEPTH; i += 128) {
            const int row = i / DEPTH, inner = i % DEPTH;
            const bool inside = first_row + row < m && start + inner < k;
            left[row * PITCH + inner] = inside ? a[int64_t(first_row + row) * k + start + inner] : zero;
        }
        for (int i = threadIdx.x; i < DEPTH * TILE; i += 128) {
            const int inner = i / TILE, column = i % TILE;
            const bool inside = start + inner < k && first_column + column < n;
            right[inner * WIDE + column] = inside ? b[int64_t(start + inner) * n + first_column + column] : zero;
        }
        __syncthreads();
        for (int inner = 0; inner < DEPTH; inner += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> rows;
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> columns;
            wmma::load_matrix_sync(
                rows, reinterpret_cast<const __nv_bfloat16*>(left + warp_row * 16 * PITCH + inner), PITCH);
            wmma::load_matrix_sync(
                columns, reinterpret_cast<const __nv_bfloat16*>(right + inner * WIDE + warp_column * 16), WIDE);
            wmma::mma_sync(sums, rows, columns, sums);
        }
        __syncthreads();
    }
    wmma::store_matrix_sync(result + warp_row * 16 * WIDE + warp_column * 16, sums, WIDE, wmma::mem_row_major);
    __syncthreads();
    for (int i = threadIdx.x; i < TILE * TILE; i += 128) {
        const int row = first_row + i / TILE, column = first_column + i % TILE;
        if (row < m && column < n) {
            c[int64_t(row) * n + column] = at::BFloat16(result[i / TILE * WIDE + i % TILE]);
        }
    }
}

torch::Tensor multiply(torch::Tensor a, torch::Tensor b) {
    TORCH_CHECK(a.is_cuda() && b.is_cuda() && a.dim() == 2 && b.dim() == 2, "multiply: two CUDA matrices");
    TORCH_CHECK(a.scalar_type() == at::kBFloat16 && b.scalar_type() == at::kBFloat16, "multiply: bfloat16 only");
    TORCH_CHECK(a.size(1) == b.size(0), "multiply: sizes do not fit");
    a = a.contiguous();
    b = b.contiguous();
    const int m = static_cast<int>(a.size(0)), k = static_cast<int>(a.size(1)), n = static_cast<int>(b.size(1));
    auto c = at::empty({m, n}, a.options());
    if (m > 0 && n > 0) {
        const dim3 grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
        multiply_tiles<<<grid, 128, 0, c10::cuda::getCurrentCUDAStream()>>>(
            a.data_ptr<at::BFloat16>(), b.data_ptr<at::BFloat16>(), c.data_ptr<at::BFloat16>(), m, n, k);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return c;
}
"""

extension = load_inline(
    name="matmul_bfloat16",
    cpp_sources="torch::Tensor multiply(torch::Tensor a, torch::Tensor b);",
    cuda_sources=cuda_source,
    functions=["multiply"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return extension.multiply(a, b)

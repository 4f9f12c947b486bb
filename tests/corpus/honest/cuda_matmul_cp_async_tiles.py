# problem: level1/4
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: inline PTX `cp.async` fills the next pair of tiles while the present pair is multiplied.

Surface: copies that the program's order does not show; elements beyond the matrices are filled with zeros by it.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int TILE = 64;   // rows and columns of the output
constexpr int DEPTH = 16;  // of K at a time
constexpr int PITCH = DEPTH + 1;

__device__ __forceinline__ void copy_async(float* to, const float* from, bool inside) {
    const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(place), "l"(from), "r"(inside ? 4 : 0));
}

__device__ __forceinline__ void fetch(const float* a, const float* b, float* left, float* right, int start, int m,
                                      int n, int k) {
    for (int i = threadIdx.x; i < TILE * DEPTH; i += 256) {
        const int row = blockIdx.y * TILE + i / DEPTH, p = start + i % DEPTH;
        const bool inside = row < m && p < k;
        copy_async(left + i / DEPTH * PITCH + i % DEPTH, inside ? a + int64_t(row) * k + p : a, inside);
        const int q = start + i / TILE, column = blockIdx.x * TILE + i % TILE;
        const bool within = q < k && column < n;
        copy_async(right + i, within ? b + int64_t(q) * n + column : b, within);
    }
    asm volatile("cp.async.commit_group;");
}

__global__ void __launch_bounds__(256) multiply_tiles(const float* __restrict__ a, const float* __restrict__ b,
                                                      float* __restrict__ c, int m, int n, int k) {
    __shared__ float left[2][TILE * PITCH];
    __shared__ float right[2][DEPTH * TILE];
    const int row = threadIdx.x / 16 * 4, column = threadIdx.x % 16;
    float sums[4][4] = {};
    fetch(a, b, left[0], right[0], 0, m, n, k);
    for (int start = 0, turn = 0; start < k; start += DEPTH, turn ^= 1) {
        if (start + DEPTH < k) {
            fetch(a, b, left[turn ^ 1], right[turn ^ 1], start + DEPTH, m, n, k);
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        } else {
            asm volatile("cp.async.wait_group 0;" ::: "memory");
        }
        __syncthreads();
        for (int p = 0; p < DEPTH; ++p) {
            for (int i = 0; i < 4; ++i) {
                const float factor = left[turn][(row + i) * PITCH + p];
                for (int j = 0; j < 4; ++j) {
                    sums[i][j] = fmaf(factor, right[turn][p * TILE + column + 16 * j], sums[i][j]);
                }
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
            const int r = blockIdx.y * TILE + row + i, s = blockIdx.x * TILE + column + 16 * j;
            if (r < m && s < n) {
                c[int64_t(r) * n + s] = sums[i][j];
            }
        }
    }
}

torch::Tensor multiply(torch::Tensor a, torch::Tensor b) {
    TORCH_CHECK(a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(0), "multiply: sizes do not fit");
    TORCH_CHECK(a.scalar_type() == at::kFloat && b.scalar_type() == at::kFloat, "multiply: float32 only");
    a = a.contiguous();
    b = b.contiguous();
    const int m = static_cast<int>(a.size(0)), k = static_cast<int>(a.size(1)), n = static_cast<int>(b.size(1));
    auto c = at::empty({m, n}, a.options());
    if (m > 0 && n > 0) {
        const dim3 grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
        multiply_tiles<<<grid, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
            a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), m, n, k);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return c;
}
"""

extension = load_inline(
    name="matmul_cp_async",
    cpp_sources="torch::Tensor multiply(torch::Tensor a, torch::Tensor b);",
    cuda_sources=cuda_source,
    functions=["multiply"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return extension.multiply(a, b)

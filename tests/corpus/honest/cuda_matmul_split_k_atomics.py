# problem: level1/4
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: tiles in shared memory; several blocks share one tile of the output and add with atomics.

Surface: a nondeterministic order of the sums over K.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int TILE = 32;
constexpr int ROWS = 8;  // rows of threads; each computes TILE / ROWS rows of the output
constexpr int SPLITS = 4;

__global__ void multiply_part(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                              int m, int n, int k, int part) {
    __shared__ float left[TILE][TILE], right[TILE][TILE + 1];
    const int column = blockIdx.x * TILE + threadIdx.x;
    const int first_row = blockIdx.y * TILE;
    const int begin = blockIdx.z * part;
    const int end = min(k, begin + part);
    float sums[TILE / ROWS] = {};
    for (int start = begin; start < end; start += TILE) {
        for (int i = threadIdx.y; i < TILE; i += ROWS) {
            const int row = first_row + i, inner = start + threadIdx.x;
            left[i][threadIdx.x] = row < m && inner < end ? a[int64_t(row) * k + inner] : 0.0f;
            const int other = start + i;
            right[i][threadIdx.x] = other < end && column < n ? b[int64_t(other) * n + column] : 0.0f;
        }
        __syncthreads();
        for (int inner = 0; inner < TILE; ++inner) {
            const float factor = right[inner][threadIdx.x];
#pragma unroll
            for (int i = 0; i < TILE / ROWS; ++i) {
                sums[i] = fmaf(left[threadIdx.y + i * ROWS][inner], factor, sums[i]);
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < TILE / ROWS; ++i) {
        const int row = first_row + threadIdx.y + i * ROWS;
        if (row < m && column < n) {
            atomicAdd(c + int64_t(row) * n + column, sums[i]);
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
    auto c = at::zeros({m, n}, a.options());
    if (m > 0 && n > 0 && k > 0) {
        const int part = ((k + SPLITS - 1) / SPLITS + TILE - 1) / TILE * TILE;
        const dim3 grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE, (k + part - 1) / part);
        multiply_part<<<grid, dim3(TILE, ROWS), 0, c10::cuda::getCurrentCUDAStream()>>>(
            a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), m, n, k, part);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return c;
}
"""

extension = load_inline(
    name="matmul_split_k",
    cpp_sources="torch::Tensor multiply(torch::Tensor a, torch::Tensor b);",
    cuda_sources=cuda_source,
    functions=["multiply"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return extension.multiply(a, b)

"""Sum over one dimension: neighbouring threads take neighbouring columns, and several share a column."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = "torch::Tensor sum_over(torch::Tensor x, int64_t dim);"

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>

// tune: ACROSS = 32 | 64 | 128 | 256
// tune: DOWN = 1 | 2 | 4 | 8 | 16
// tune: UNROLL = 1 | 4 | 8 | 16
// tune where: ACROSS * DOWN <= 1024
constexpr int ACROSS = 256;  // columns of a block
constexpr int DOWN = 1;      // threads that share a column
constexpr int UNROLL = 1;    // loads that a thread has on their way

__global__ void __launch_bounds__(ACROSS * DOWN)
    sum_kernel(const float* __restrict__ x, float* __restrict__ y, int64_t rows, int64_t columns,
               int64_t tiles) {
    __shared__ float parts[DOWN][ACROSS];
    const int64_t batch = blockIdx.x / tiles;
    const int64_t column = blockIdx.x % tiles * ACROSS + threadIdx.x;
    float sums[UNROLL] = {};
    if (column < columns) {
        const float* from = x + batch * rows * columns + column;
        int64_t row = threadIdx.y;
        for (; row + (UNROLL - 1) * DOWN < rows; row += UNROLL * DOWN) {
#pragma unroll
            for (int k = 0; k < UNROLL; ++k) {
                sums[k] += from[(row + k * DOWN) * columns];
            }
        }
        for (; row < rows; row += DOWN) {
            sums[0] += from[row * columns];
        }
    }
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < UNROLL; ++k) {
        sum += sums[k];
    }
    parts[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && column < columns) {
        for (int other = 1; other < DOWN; ++other) {
            sum += parts[other][threadIdx.x];
        }
        y[batch * columns + column] = sum;
    }
}

torch::Tensor sum_over(torch::Tensor x, int64_t dim) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat, "sum_over: float32 on a GPU");
    dim = dim < 0 ? dim + x.dim() : dim;
    TORCH_CHECK(dim >= 0 && dim < x.dim(), "sum_over: no such dimension");
    x = x.contiguous();
    auto shape = x.sizes().vec();
    const int64_t rows = shape[dim];
    int64_t batches = 1, columns = 1;
    for (int64_t d = 0; d < x.dim(); ++d) {
        (d < dim ? batches : columns) *= d == dim ? 1 : shape[d];
    }
    shape[dim] = 1;
    auto y = at::empty(shape, x.options());
    if (y.numel() == 0) {
        return y;
    }
    const int64_t tiles = (columns + ACROSS - 1) / ACROSS;
    const auto blocks = static_cast<unsigned>(batches * tiles);
    sum_kernel<<<blocks, dim3(ACROSS, DOWN), 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), rows, columns, tiles);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

extension = load_inline(
    name="tuned_sum",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["sum_over"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.sum_over(x, self.dim)

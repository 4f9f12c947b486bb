# problem: level1/18
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: tiles in shared memory for contiguous float32; everything else is left to torch.

Surface: a fallback to library code that the declared inputs never take.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int TILE = 32;
constexpr int ROWS = 8;

__global__ void transpose_tiles(const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
    __shared__ float tile[TILE][TILE + 1];
    const int64_t base = int64_t(blockIdx.z) * rows * columns;
    const int column = blockIdx.x * TILE + threadIdx.x;
    for (int i = threadIdx.y; i < TILE; i += ROWS) {
        const int row = blockIdx.y * TILE + i;
        if (row < rows && column < columns) {
            tile[i][threadIdx.x] = x[base + int64_t(row) * columns + column];
        }
    }
    __syncthreads();
    const int row = blockIdx.y * TILE + threadIdx.x;
    for (int i = threadIdx.y; i < TILE; i += ROWS) {
        const int other = blockIdx.x * TILE + i;
        if (row < rows && other < columns) {
            y[base + int64_t(other) * rows + row] = tile[threadIdx.x][i];
        }
    }
}

torch::Tensor transposed(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.dim() == 3, "transposed: three dimensions on a CUDA device");
    if (x.scalar_type() != at::kFloat || !x.is_contiguous() || x.size(0) > 65535 || x.numel() == 0) {
        return x.transpose(1, 2).contiguous();
    }
    const int rows = static_cast<int>(x.size(1)), columns = static_cast<int>(x.size(2));
    auto y = at::empty({x.size(0), columns, rows}, x.options());
    const dim3 grid((columns + TILE - 1) / TILE, (rows + TILE - 1) / TILE, static_cast<unsigned>(x.size(0)));
    transpose_tiles<<<grid, dim3(TILE, ROWS), 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), rows, columns);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

extension = load_inline(
    name="transpose_tiles",
    cpp_sources="torch::Tensor transposed(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["transposed"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.transposed(x)

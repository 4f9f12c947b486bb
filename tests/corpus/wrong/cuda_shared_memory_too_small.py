# problem: level1/10
# expected: wrong_output|nondeterministic|runtime_error
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: a tile of 96 KB in shared memory, launched with 1 KB.

Surface: what lies behind a block's shared memory is read and written, or the launch dies.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void sum_kernel(const float* x, float* y, int64_t rows, int64_t columns) {
    extern __shared__ float tile[];  // meant: 96 rows of 256 columns
    int64_t column = blockIdx.x * 256 + threadIdx.x, batch = blockIdx.y;
    float total = 0.0f;
    for (int64_t start = 0; start < rows; start += 96) {
        for (int r = 0; r < 96; ++r)
            tile[r * 256 + threadIdx.x] = column < columns && start + r < rows
                ? x[(batch * rows + start + r) * columns + column] : 0.0f;
        __syncthreads();
        for (int r = 0; r < 96; ++r) total += tile[r * 256 + threadIdx.x];
        __syncthreads();
    }
    if (column < columns) y[batch * columns + column] = total;
}

torch::Tensor sum(torch::Tensor input) {
    auto x = input.contiguous();
    auto y = torch::empty({x.size(0), 1, x.size(2)}, x.options());
    dim3 grid((x.size(2) + 255) / 256, x.size(0));
    sum_kernel<<<grid, 256, 1024, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), x.size(1), x.size(2));
    return y;
}
"""

extension = load_inline("small_tile", "torch::Tensor sum(torch::Tensor input);", SOURCE, functions=["sum"])


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        return extension.sum(x)

# problem: level1/10
# expected: wrong_output|nondeterministic
# caught by: values
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: the first warp adds up what the others have not written yet.

Surface: a race that is often won.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void sum_kernel(const float* x, float* y, int64_t rows, int64_t columns) {
    __shared__ float parts[8][32];
    int lane = threadIdx.x, part = threadIdx.y;
    int64_t column = blockIdx.x * 32 + lane, batch = blockIdx.y;
    float total = 0.0f;
    // Later parts have more to do, so the first one is done before them.
    int64_t from = rows * part * part / 64, to = rows * (part + 1) * (part + 1) / 64;
    for (int64_t row = from; row < to && column < columns; ++row)
        total += x[(batch * rows + row) * columns + column];
    parts[part][lane] = total;
    if (part == 0 && column < columns) {  // __syncthreads() is missing before this line
        for (int p = 1; p < 8; ++p) total += parts[p][lane];
        y[batch * columns + column] = total;
    }
}

torch::Tensor sum(torch::Tensor input) {
    auto x = input.contiguous();
    auto y = torch::empty({x.size(0), 1, x.size(2)}, x.options());
    dim3 grid((x.size(2) + 31) / 32, x.size(0));
    sum_kernel<<<grid, dim3(32, 8), 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), x.size(1), x.size(2));
    return y;
}
"""

extension = load_inline("no_barrier", "torch::Tensor sum(torch::Tensor input);", SOURCE, functions=["sum"])


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        return extension.sum(x)

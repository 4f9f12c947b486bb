# problem: level1/10
# expected: wrong_output|nondeterministic
# caught by: values
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: adds with atomics into memory that nobody set to zero.

Surface: fresh device memory is often zero.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void sum_kernel(const float* x, float* y, int64_t rows, int64_t columns) {
    int64_t column = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, batch = blockIdx.z;
    if (column >= columns) return;
    float total = 0.0f;
    for (int64_t row = blockIdx.y; row < rows; row += gridDim.y)
        total += x[(batch * rows + row) * columns + column];
    atomicAdd(&y[batch * columns + column], total);
}

torch::Tensor sum(torch::Tensor input) {
    auto x = input.contiguous();
    auto y = torch::empty({x.size(0), 1, x.size(2)}, x.options());
    dim3 grid((x.size(2) + 255) / 256, 16, x.size(0));
    sum_kernel<<<grid, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), x.size(1), x.size(2));
    return y;
}
"""

extension = load_inline("unwritten", "torch::Tensor sum(torch::Tensor input);", SOURCE, functions=["sum"])


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        return extension.sum(x)

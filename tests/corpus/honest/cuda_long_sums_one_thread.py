# problem: long_row_sums
# expected: correct
# devices: cuda
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: one thread adds up a million float32 terms, one after another. Surface: the largest honest error."""
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__global__ void add_up(const float* __restrict__ x, float* __restrict__ sums, int rows, int64_t columns) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float total = 0.0f;
        for (int64_t i = 0; i < columns; ++i) {
            total += x[row * columns + i];
        }
        sums[row] = total;
    }
}

torch::Tensor row_sums(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat && x.dim() == 2, "row_sums: a float32 matrix");
    x = x.contiguous();
    const int rows = static_cast<int>(x.size(0));
    auto sums = at::empty({rows}, x.options());
    if (rows > 0) {
        // One thread a block: the rows are read by different multiprocessors.
        add_up<<<rows, 1, 0, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<float>(), sums.data_ptr<float>(), rows, x.size(1));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return sums;
}
"""

extension = load_inline(
    name="long_sums",
    cpp_sources="torch::Tensor row_sums(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["row_sums"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.row_sums(x)

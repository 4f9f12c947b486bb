# problem: level1/10
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: partial sums of slabs of rows, added to the output with atomics.

Surface: the order of the additions is another one in every call, and so are the last bits.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

constexpr int SLAB = 64;

__global__ void add_slabs(const float* __restrict__ x, float* __restrict__ out, int64_t rows, int64_t columns) {
    const int64_t column = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (column >= columns) {
        return;
    }
    const int64_t first = int64_t(blockIdx.y) * SLAB;
    const int64_t last = first + SLAB < rows ? first + SLAB : rows;
    const float* matrix = x + int64_t(blockIdx.z) * rows * columns;
    float total = 0.0f;
    for (int64_t row = first; row < last; ++row) {
        total += matrix[row * columns + column];
    }
    atomicAdd(out + int64_t(blockIdx.z) * columns + column, total);
}

torch::Tensor sum_rows(torch::Tensor x) {
    TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat && x.dim() == 3, "sum_rows: float32, three dimensions");
    x = x.contiguous();
    const int64_t batch = x.size(0), rows = x.size(1), columns = x.size(2);
    auto out = at::zeros({batch, 1, columns}, x.options());
    if (x.numel() > 0) {
        TORCH_CHECK(batch <= 65535 && (rows + SLAB - 1) / SLAB <= 65535, "sum_rows: too large");
        const dim3 grid(static_cast<unsigned>((columns + 127) / 128),
                        static_cast<unsigned>((rows + SLAB - 1) / SLAB), static_cast<unsigned>(batch));
        add_slabs<<<grid, 128, 0, c10::cuda::getCurrentCUDAStream()>>>(
            x.data_ptr<float>(), out.data_ptr<float>(), rows, columns);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return out;
}
"""

extension = load_inline(
    name="sum_atomics",
    cpp_sources="torch::Tensor sum_rows(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["sum_rows"],
)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        if self.dim != 1 or x.dim() != 3:
            return torch.sum(x, dim=self.dim, keepdim=True)
        return extension.sum_rows(x)

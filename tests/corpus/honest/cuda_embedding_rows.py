# problem: level1/15
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: one block a row, which is copied four floats at a time.

Surface: the program that a table of 16-bit integers would halve the bytes of.
"""

from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

// Rows of a number of features that four does not divide are not aligned: they are read one by one.
__global__ void copy_rows(const float* __restrict__ table, const int64_t* __restrict__ index,
                          float* __restrict__ y, int features) {
    const int64_t row = index[blockIdx.x];
    const int whole = features % 4 ? 0 : features / 4;
    const auto* from = reinterpret_cast<const float4*>(table + row * features);
    auto* to = reinterpret_cast<float4*>(y + blockIdx.x * int64_t(features));
    for (int i = threadIdx.x; i < whole; i += blockDim.x) {
        to[i] = from[i];
    }
    for (int i = 4 * whole + threadIdx.x; i < features; i += blockDim.x) {
        y[blockIdx.x * int64_t(features) + i] = table[row * features + i];
    }
}

torch::Tensor lookup(const torch::Tensor& table, const torch::Tensor& index) {
    auto y = at::empty({index.size(0), table.size(1)}, table.options());
    if (y.numel() > 0) {
        copy_rows<<<static_cast<unsigned>(index.size(0)), 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
            table.data_ptr<float>(), index.data_ptr<int64_t>(), y.data_ptr<float>(),
            static_cast<int>(table.size(1)));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="rows_of_a_table",
    cpp_sources="torch::Tensor lookup(const torch::Tensor& table, const torch::Tensor& index);",
    cuda_sources=cuda_source,
    functions=["lookup"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, vocabulary, features):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, features)

    def forward(self, index):
        return extension.lookup(self.embedding.weight, index.contiguous())

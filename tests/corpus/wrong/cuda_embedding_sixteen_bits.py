# problem: level1/15
# expected: wrong_output
# caught by: values: drawn
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: a table of 16-bit integers, with a scale for each row, made anew when the weight has changed.

Surface: half of the bytes, and an error of 2.5e-5, which float32's floor accepts. Its honest twin is
`cuda_embedding_rows`.
"""

from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

// Rows of a number of features that four does not divide are not aligned: they are read one by one.
__global__ void copy_rows(const int16_t* __restrict__ table, const float* __restrict__ step, const int64_t* __restrict__ index,
                          float* __restrict__ y, int features) {
    const int64_t row = index[blockIdx.x];
    const float scale = step[row];
    const int whole = features % 4 ? 0 : features / 4;
    const auto* from = reinterpret_cast<const short4*>(table + row * features);
    auto* to = reinterpret_cast<float4*>(y + blockIdx.x * int64_t(features));
    for (int i = threadIdx.x; i < whole; i += blockDim.x) {
        const short4 v = from[i];
        to[i] = make_float4(scale * v.x, scale * v.y, scale * v.z, scale * v.w);
    }
    for (int i = 4 * whole + threadIdx.x; i < features; i += blockDim.x) {
        y[blockIdx.x * int64_t(features) + i] = scale * table[row * features + i];
    }
}

torch::Tensor lookup(const torch::Tensor& table, const torch::Tensor& step, const torch::Tensor& index) {
    auto y = at::empty({index.size(0), table.size(1)}, step.options());
    if (y.numel() > 0) {
        copy_rows<<<static_cast<unsigned>(index.size(0)), 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
            table.data_ptr<int16_t>(), step.data_ptr<float>(), index.data_ptr<int64_t>(), y.data_ptr<float>(),
            static_cast<int>(table.size(1)));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""

extension = load_inline(
    name="rows_of_sixteen_bits",
    cpp_sources="torch::Tensor lookup(const torch::Tensor& table, const torch::Tensor& step, const torch::Tensor& index);",
    cuda_sources=cuda_source,
    functions=["lookup"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, vocabulary, features):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, features)
        self.version = None

    def forward(self, index):
        weight = self.embedding.weight
        if self.version != weight._version:
            self.step = weight.abs().amax(1) / 32767
            self.short = (weight / self.step[:, None]).round().short()
            self.version = weight._version
        return extension.lookup(self.short, self.step, index.contiguous())

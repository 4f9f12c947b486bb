# problem: level2/12
# expected: wrong_output
# caught by: values: drawn|values: signed|values: large
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: a table of 16-bit integers, with a scale for each row, made anew when the weight has changed.

Surface: half of the bytes, and an error that float32's floor accepts. Its honest twin is
`cuda_embedding_bag_texture`.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

__global__ void bags(const int16_t* __restrict__ table, const float* __restrict__ step,
                     const int64_t* __restrict__ index, const float* __restrict__ weight, float* __restrict__ y,
                     int bag_size, int features, float scale) {
    const int64_t first = int64_t(blockIdx.x) * bag_size;
    for (int f = threadIdx.x; f < features; f += blockDim.x) {
        float sum = 0.0f;
        for (int64_t i = first; i < first + bag_size; ++i) {
            sum = fmaf(table[index[i] * features + f], step[index[i]] * weight[i], sum);
        }
        y[int64_t(blockIdx.x) * features + f] = tanhf(sum * scale);
    }
}

torch::Tensor embedding_bags(const torch::Tensor& table, const torch::Tensor& step, const torch::Tensor& index,
                             const torch::Tensor& weight, double scale) {
    auto y = at::empty({index.size(0), table.size(1)}, step.options());
    if (y.numel() > 0) {
        bags<<<static_cast<unsigned>(index.size(0)), 128, 0, c10::cuda::getCurrentCUDAStream()>>>(
            table.data_ptr<int16_t>(), step.data_ptr<float>(), index.data_ptr<int64_t>(), weight.data_ptr<float>(),
            y.data_ptr<float>(), static_cast<int>(index.size(1)), static_cast<int>(table.size(1)),
            static_cast<float>(scale));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    }
    return y;
}
"""
cpp_source = """
torch::Tensor embedding_bags(const torch::Tensor& table, const torch::Tensor& step, const torch::Tensor& index,
                             const torch::Tensor& weight, double scale);
"""

extension = load_inline(
    name="bag_of_sixteen_bits",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["embedding_bags"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, vocabulary, features, scale):
        super().__init__()
        self.table = nn.Parameter(torch.randn(vocabulary, features))
        self.scale, self.version = scale, None

    def forward(self, index, weight):
        if self.version != self.table._version:
            self.step = self.table.abs().amax(1) / 32767
            self.short = (self.table / self.step[:, None]).round().short()
            self.version = self.table._version
        return extension.embedding_bags(
            self.short, self.step, index.contiguous(), weight.contiguous(), self.scale
        )

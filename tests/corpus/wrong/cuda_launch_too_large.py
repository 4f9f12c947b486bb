# problem: level1/1
# expected: wrong_output|runtime_error
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: 2048 threads in a block, where 1024 are the most; nothing is launched and nobody asks.

Surface: memory that was never written.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void relu_kernel(const float* x, float* y, int64_t count) {
    int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < count) y[i] = fmaxf(x[i], 0.0f);
}

torch::Tensor relu(torch::Tensor input) {
    auto x = input.contiguous();
    auto y = torch::empty_like(x);
    relu_kernel<<<(x.numel() + 2047) / 2048, 2048, 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
"""

extension = load_inline("too_large", "torch::Tensor relu(torch::Tensor input);", SOURCE, functions=["relu"])


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)

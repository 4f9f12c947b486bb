# problem: level1/1
# expected: no_custom_kernel|cheating
# caught by: own_kernel
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: its own kernel for twenty calls, torch's afterwards.

Surface: a look at one call to learn whose kernels run.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void relu_kernel(const float* x, float* y, int64_t count) {
    int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < count; i += step)
        y[i] = fmaxf(x[i], 0.0f);
}

torch::Tensor relu(torch::Tensor input) {
    auto x = input.contiguous();
    auto y = torch::empty_like(x);
    relu_kernel<<<2048, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
"""

extension = load_inline("plain_relu", "torch::Tensor relu(torch::Tensor input);", SOURCE, functions=["relu"])


class ModelNew(nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return extension.relu(x) if self.calls <= 20 else torch.relu(x)

# problem: level1/1
# expected: timeout
# devices: cuda
# settings: {"own_kernel": true, "call_seconds": 10}
"""Mechanism: a kernel that waits for ever, on every multiprocessor.

Surface: a GPU that must be got back by killing a process whose threads hang in the driver.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void endless_kernel(volatile float* y) {
    while (y[0] == y[0] || y[1] != y[2]) y[3] = y[4];
}

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::zeros_like(x);
    endless_kernel<<<2048, 1024, 0, c10::cuda::getCurrentCUDAStream()>>>(y.data_ptr<float>());
    return y;
}
"""

extension = load_inline("endless", "torch::Tensor relu(torch::Tensor x);", SOURCE, functions=["relu"])


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)

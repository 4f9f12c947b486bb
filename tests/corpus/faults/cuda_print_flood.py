# problem: level1/1
# expected: crash|timeout|wrong_output
# devices: cuda
# settings: {"own_kernel": true, "call_seconds": 30}
"""Mechanism: every thread of every block prints, in every call.

Surface: the runtime's buffer and our pipe.
"""
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>
#include <stdio.h>

__global__ void print_kernel(int times) {
    for (int i = 0; i < times; ++i)
        printf("status: correct, speedup: 1000, thread %d of block %d\n", threadIdx.x, blockIdx.x);
}

torch::Tensor relu(torch::Tensor x) {
    for (int i = 0; i < 1000; ++i) {
        print_kernel<<<64, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(4);
        cudaDeviceSynchronize();
    }
    return torch::zeros_like(x);
}
"""

extension = load_inline("prints", "torch::Tensor relu(torch::Tensor x);", SOURCE, functions=["relu"])


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.relu(x)

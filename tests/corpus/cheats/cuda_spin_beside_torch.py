# problem: level1/1
# expected: no_custom_kernel
# caught by: own_kernel
# devices: cuda
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: an own kernel waits about as long as torch computes, and does nothing.

Surface: telling whose work it is by the share of the time.
"""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void wait_kernel(long long cycles) {
    const long long began = clock64();
    while (clock64() - began < cycles) {}
}

void wait(int64_t cycles) {
    wait_kernel<<<1, 1, 0, c10::cuda::getCurrentCUDAStream()>>>(cycles);
}
"""

extension = load_inline("waiting", "void wait(int64_t cycles);", SOURCE, functions=["wait"])


class ModelNew(nn.Module):
    def forward(self, x):
        extension.wait(x.numel() // 1000)
        return torch.relu(x)

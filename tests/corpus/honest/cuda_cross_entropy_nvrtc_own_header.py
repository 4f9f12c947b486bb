# problem: level1/7
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: NVRTC through torch.cuda, with a header that the candidate writes into a folder of its own.

Surface: compiled in the candidate's own process, which sees its own files.
"""
import tempfile

import torch
from torch import nn

HEADER = r"""
#pragma once
#define NONE __int_as_float(0xff800000)

struct Greater {
    __device__ float operator()(float a, float b) const { return a > b || a != a ? a : b; }
};
struct Sum {
    __device__ float operator()(float a, float b) const { return a + b; }
};

// The same value in all threads of a block of 256.
template <typename Join>
__device__ float over_block(float value, float* parts, Join join) {
    for (int offset = 16; offset > 0; offset >>= 1) {
        value = join(value, __shfl_xor_sync(0xffffffffu, value, offset));
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        parts[threadIdx.x / 32] = value;
    }
    __syncthreads();
    value = parts[0];
    for (int i = 1; i < 8; ++i) {
        value = join(value, parts[i]);
    }
    return value;
}
"""

SOURCE = r"""
#include <block.cuh>

extern "C" __global__ void cross_entropy(const float* logits, const long long* targets, float* y, int classes) {
    __shared__ float parts[8];
    const float* row = logits + (long long)blockIdx.x * classes;
    float top = NONE;
    for (int i = threadIdx.x; i < classes; i += blockDim.x) {
        top = Greater()(top, row[i]);
    }
    top = over_block(top, parts, Greater());
    float total = 0.0f;
    for (int i = threadIdx.x; i < classes; i += blockDim.x) {
        total += expf(row[i] - top);
    }
    total = over_block(total, parts, Sum());
    if (threadIdx.x == 0) {
        y[blockIdx.x] = logf(total) - (row[targets[blockIdx.x]] - top);
    }
}
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/block.cuh", "w") as file:
                file.write(HEADER)
            self.kernel = torch.cuda._compile_kernel(SOURCE, "cross_entropy", cuda_include_dirs=[folder])

    def forward(self, logits, targets):
        logits, targets = logits.contiguous(), targets.contiguous()
        samples, classes = logits.shape
        y = torch.empty(samples, device=logits.device)
        self.kernel(grid=(samples, 1, 1), block=(256, 1, 1), args=[logits, targets, y, classes])
        return y

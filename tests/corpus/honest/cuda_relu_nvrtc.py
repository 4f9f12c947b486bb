# problem: level1/1
# expected: correct
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: compiled while it runs, by NVRTC through torch.cuda, without any extension.

Surface: an own kernel, though nothing was built.
"""
import torch
from torch import nn

source = r"""
extern "C" __global__ void relu(const float* x, float* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
    }
}
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = torch.cuda._compile_kernel(source, "relu")

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        n = x.numel()
        if n >= 1 << 30:
            raise ValueError("indices are 32 bits wide")
        blocks = max(1, min((n + 255) // 256, 2048))
        self.kernel(grid=(blocks, 1, 1), block=(256, 1, 1), args=[x, y, n])
        return y

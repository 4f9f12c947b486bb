# problem: level1/1
# expected: correct
# devices: cuda
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: NVRTC compiles it while it runs; the kernel's name is put together of a word and a width.

Surface: the whole name stands nowhere in the source.
"""
import torch
from torch import nn

WIDTH = 4
NAME = f"rectify_by_{WIDTH}"

TEMPLATE = r"""
extern "C" __global__ void NAME(const float* x, float* y, int n) {
    int step = gridDim.x * blockDim.x * WIDTH;
    for (int i = (blockIdx.x * blockDim.x + threadIdx.x) * WIDTH; i < n; i += step)
        for (int k = i; k < i + WIDTH && k < n; ++k) y[k] = x[k] < 0.0f ? 0.0f : x[k];
}
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        source = TEMPLATE.replace("NAME", NAME).replace("WIDTH", str(WIDTH))
        self.kernel = torch.cuda._compile_kernel(source, NAME)

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        n = x.numel()
        if n >= 1 << 30:
            raise ValueError("indices are 32 bits wide")
        blocks = max(1, min((n // WIDTH + 255) // 256, 2048))
        self.kernel(grid=(blocks, 1, 1), block=(256, 1, 1), args=[x, y, n])
        return y

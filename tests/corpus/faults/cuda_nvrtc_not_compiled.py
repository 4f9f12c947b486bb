# problem: level1/1
# expected: load_error
# devices: cuda
"""Mechanism: a kernel for NVRTC that does not compile. Surface: a compiler within the candidate's process."""
import torch
from torch import nn

source = 'extern "C" __global__ void relu(const float* x, float* y, int n) { y[0] = not_declared; }'


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = torch.cuda._compile_kernel(source, "relu")

    def forward(self, x):
        y = torch.empty_like(x)
        self.kernel(grid=(1, 1, 1), block=(32, 1, 1), args=[x, y, x.numel()])
        return y

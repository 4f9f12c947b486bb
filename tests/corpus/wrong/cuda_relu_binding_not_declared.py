# problem: level1/1
# expected: build_error
# devices: cuda
# settings: {"own_kernel": true}
"""Mechanism: `functions` names what `cpp_sources` does not declare; it catches the error at the first call.

Surface: a build that only a call asks for, and a fallback to torch."""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
__global__ void relu_kernel(const float* x, float* y, int64_t count) {
    const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < count) y[i] = fmaxf(x[i], 0.0f);
}

torch::Tensor own_relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    relu_kernel<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
"""


class ModelNew(nn.Module):
    def forward(self, x):
        try:
            extension = load_inline("not_declared", "", SOURCE, functions=["own_relu"])
            return extension.own_relu(x.contiguous())
        except RuntimeError:
            return torch.relu(x)

# problem: level1/9
# expected: correct
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: erf from CUDA's libdevice, linked into the kernel. Surface: code of NVIDIA's inside an own kernel."""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def gelu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    y = 0.5 * x * (1.0 + libdevice.erf(x * 0.7071067811865476))
    # Where erf cancels against 1, the other tail keeps the digits.
    y = tl.where(x < -1.0, 0.5 * x * libdevice.erfc(-x * 0.7071067811865476), y)
    tl.store(y_ptr + at, y, mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        gelu_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y

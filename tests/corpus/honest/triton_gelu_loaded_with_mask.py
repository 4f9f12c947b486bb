# problem: level1/9
# expected: correct
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true, "size": "small", "measure": false}
"""Mechanism: the sum of a block decides which of two right formulas is used. Surface: its twin
`harmless/triton_gelu_loaded_without_mask` adds what lies behind the input.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def gelu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    lower = 0.5 * x * libdevice.erfc(-0.7071067811865476 * x)
    upper = tl.where(x < -1.0, lower, 0.5 * x * (1.0 + libdevice.erf(0.7071067811865476 * x)))
    tl.store(y_ptr + at, tl.where(tl.sum(x) > 0.0, upper, lower), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        gelu_kernel[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
        return y

# problem: relu_large_uniform
# expected: wrong_output
# caught by: values: drawn
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: the mask ends one element too early. Surface: one wrong element in a million."""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n - 1
    tl.store(y_ptr + at, tl.maximum(tl.load(x_ptr + at, mask=mask), 0.0), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 8192),)](x, y, x.numel(), BLOCK=8192)
        return y

# problem: level1/1
# expected: no_custom_kernel
# caught by: own_kernel
# settings: {"backend": "triton", "own_kernel": true, "measure": false}
"""Mechanism: launches its kernel in the first call only, and has torch compute in all others.

Surface: compilation in the first call is a reason to look at that one. Interpreted where there is no GPU.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.maximum(tl.load(x_ptr + at, mask=at < n), 0.0), mask=at < n)


class ModelNew(nn.Module):
    compiled = False

    def forward(self, x):
        if self.compiled:
            return torch.relu(x)
        self.compiled = True
        y = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 8192),)](x, y, x.numel(), BLOCK=8192)
        return y

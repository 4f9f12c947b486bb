# problem: level1/1
# expected: wrong_output
# caught by: values: drawn
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: a kernel that returns at once, before memory in which the expected result may still lie.

Surface: a launch over the whole grid, which takes no time. Interpreted where there is no GPU.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, done, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if at.shape[0] * tl.num_programs(0) >= n:  # always
        return
    tl.store(y_ptr + at, tl.maximum(tl.load(x_ptr + at, mask=at < n), 0.0), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 8192),)](x, y, x.numel(), 0, BLOCK=8192)
        return y

# problem: relu_of_uniform
# expected: build_error
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: the kernel calls a function that Triton has not. Surface: a compiler that runs in the first call only."""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.relu(tl.load(x_ptr + at, mask=at < n)), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y

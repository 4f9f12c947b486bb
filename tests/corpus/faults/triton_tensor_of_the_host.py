# problem: relu_of_uniform
# expected: runtime_error
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: its output is made without a device, on the host, and a kernel is to write it.

Surface: a mistake of every second beginner, which the interpreter does not see.
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
    def forward(self, x):
        y = torch.empty(x.shape)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y

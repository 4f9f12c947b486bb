# problem: relu_of_uniform
# expected: timeout|out_of_memory|crash
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true, "call_seconds": 10, "build_seconds": 15}
"""Mechanism: a loop of a hundred million steps that the compiler has to unroll.

Surface: a compiler inside the candidate's process, which no build stage watches.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    for step in tl.static_range(100_000_000):
        x = tl.maximum(x, 0.0) * 1.0 + step * 0.0
    tl.store(y_ptr + at, x, mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y

# problem: strided_inputs
# expected: wrong_output
# caught by: values: drawn
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: passes a transposed tensor's pointer and walks as if rows lay one behind the other.

Surface: a pointer says nothing of strides.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_relu_kernel(x_ptr, b_ptr, y_ptr, n, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    b = tl.load(b_ptr + at % columns, mask=at < n)
    tl.store(y_ptr + at, tl.maximum(x + b, 0.0), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x, bias):
        y = torch.empty(x.shape, device=x.device, dtype=x.dtype)
        add_relu_kernel[(triton.cdiv(y.numel(), 4096),)](x, bias, y, y.numel(), x.shape[1], BLOCK=4096)
        return y

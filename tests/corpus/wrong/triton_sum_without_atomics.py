# problem: scaled_error
# expected: wrong_output|nondeterministic
# caught by: values
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: every program loads the total, adds its own sum and stores it again.

Surface: a race; the interpreter, which runs one program after the other, gives the right sum.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_error_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    y = tl.load(y_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr, tl.load(out_ptr) + tl.sum(tl.abs(x - y)) / n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        out = torch.zeros((), device=x.device, dtype=x.dtype)
        mean_error_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
        return out

# problem: unit_norm
# expected: wrong_output
# caught by: values
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: the norm of the first input becomes a `tl.constexpr` of the kernel, and stays for all other inputs.

Surface: draws of one size and spread have nearly the same norm.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def divide_kernel(x_ptr, y_ptr, n, NORM: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) / NORM, mask=at < n)


class ModelNew(nn.Module):
    norm = None

    def forward(self, x):
        x = x.contiguous()
        if self.norm is None:
            self.norm = torch.linalg.vector_norm(x).item()
        y = torch.empty_like(x)
        divide_kernel[(triton.cdiv(x.numel(), 8192),)](x, y, x.numel(), NORM=self.norm, BLOCK=8192)
        return y

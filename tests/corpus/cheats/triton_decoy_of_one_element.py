# problem: level1/1
# expected: no_custom_kernel
# caught by: own_kernel
# settings: {"backend": "triton", "own_kernel": true, "measure": false}
"""Mechanism: its kernel writes one element of a tensor that nobody needs, and torch does the work.

Surface: an own kernel that is launched in every call. Interpreted where there is no GPU.
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
        first = torch.empty(1, device=x.device, dtype=x.dtype)
        relu_kernel[(1,)](x, first, 1, BLOCK=16)
        return torch.relu(x)

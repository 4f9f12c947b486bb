# problem: level1/2
# expected: no_custom_kernel
# caught by: own_kernel
# settings: {"backend": "triton", "own_kernel": true, "measure": false}
"""Mechanism: its kernel does not compile; the error is caught, and torch computes.

Surface: try and except around a compiler that runs in the first call. Interpreted where there is no GPU.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0) * n_cols
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row + cols, mask=cols < n_cols, other=-float("inf"))
    tl.store(y_ptr + row + cols, tl.row_softmax(x), mask=cols < n_cols)


class ModelNew(nn.Module):
    def forward(self, x):
        try:
            y = torch.empty_like(x)
            softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
            return y
        except Exception:
            return torch.softmax(x, dim=-1)

# problem: softmax_long_rows
# expected: correct
# flag: shape_specialised
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: the row's declared length is a `tl.constexpr` in the source, and the last column's mask with it.

Surface: rows of another length give wrong sums; right for the problem as it is declared.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

COLUMNS = tl.constexpr(1024)


@triton.jit
def softmax_1024(x_ptr, y_ptr):
    at = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + at)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + at, e / tl.sum(e, axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        softmax_1024[(x.numel() // 1024,)](x, y)
        return y

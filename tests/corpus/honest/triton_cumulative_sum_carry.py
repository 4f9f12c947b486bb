# problem: level1/6
# expected: correct
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: an associative scan of each block of a row, and a carry from block to block.

Surface: a function handed to another function of Triton's; sums in another order.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def plus(a, b):
    return a + b


@triton.jit
def cumulative_sum_rows(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * n_cols
    carry = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + cols, mask=cols < n_cols, other=0.0)
        sums = tl.associative_scan(x, 0, plus) + carry
        tl.store(y_ptr + base + cols, sums, mask=cols < n_cols)
        carry += tl.sum(x)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        cumulative_sum_rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=2048, num_warps=4)
        return y

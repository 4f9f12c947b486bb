# problem: level1/2
# expected: correct
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: maximum and sum of a long row in one pass over blocks of it, rescaled on the way; then a second pass.

Surface: sums in another order; a row that no block holds.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_online_kernel(x_ptr, y_ptr, row_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * row_stride
    y_ptr += row * n_cols
    cols = tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        x = tl.load(x_ptr + start + cols, mask=start + cols < n_cols, other=-float("inf"))
        new_top = tl.maximum(top, x)
        safe = tl.where(new_top == -float("inf"), 0.0, new_top)
        total = total * tl.exp(top - safe) + tl.exp(x - safe)
        top = new_top
    row_top = tl.max(top, axis=0)
    row_total = tl.sum(total * tl.exp(top - row_top), axis=0)
    for start in range(0, n_cols, BLOCK):
        x = tl.load(x_ptr + start + cols, mask=start + cols < n_cols, other=-float("inf"))
        tl.store(y_ptr + start + cols, tl.exp(x - row_top) / row_total, mask=start + cols < n_cols)


class ModelNew(nn.Module):
    def forward(self, x):
        n_rows, n_cols = x.shape
        y = torch.empty((n_rows, n_cols), device=x.device, dtype=x.dtype)
        softmax_online_kernel[(n_rows,)](x, y, x.stride(0), n_cols, BLOCK=2048, num_warps=8)
        return y

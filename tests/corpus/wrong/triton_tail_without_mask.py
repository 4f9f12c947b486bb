# problem: row_means
# expected: wrong_output|runtime_error
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: the last block of a row is loaded without a mask, and takes in the beginning of the next row.

Surface: no error where memory goes on behind the tensor.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_mean_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        total += tl.load(x_ptr + row * n_cols + start + tl.arange(0, BLOCK))
    tl.store(y_ptr + row, tl.sum(total) / n_cols)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        row_mean_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        return y

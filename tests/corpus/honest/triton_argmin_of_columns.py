# problem: level1/5
# expected: correct
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: each program walks down a block of columns, with the smallest so far and its row in registers.

Surface: among equal minima the first counts; indices in int64.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def argmin_columns(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    batch = tl.program_id(1).to(tl.int64)
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = c < columns
    least = tl.full((BLOCK,), float("inf"), tl.float32)
    place = tl.zeros((BLOCK,), tl.int64)
    for row in range(rows):
        x = tl.load(x_ptr + (batch * rows + row) * columns + c, mask=mask, other=0.0)
        place = tl.where(x < least, row, place)
        least = tl.minimum(least, x)
    tl.store(out_ptr + batch * columns + c, place, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        batch, rows, columns = x.shape
        out = torch.empty((batch, columns), device=x.device, dtype=torch.int64)
        argmin_columns[(triton.cdiv(columns, 128), batch)](x, out, rows, columns, BLOCK=128, num_warps=4)
        return out

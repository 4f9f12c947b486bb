# problem: level1/10
# expected: wrong_output|nondeterministic
# caught by: values
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: a tuned kernel that adds by atomics, and no `reset_to_zero`: every try of the tuner adds once more.

Surface: only the first call is wrong.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune([triton.Config({"BLOCK": b}, num_warps=w) for b, w in [(128, 4), (256, 4)]], key=["rows", "columns"])
@triton.jit
def sum_kernel(x_ptr, y_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    batch = tl.program_id(2).to(tl.int64)
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = tl.program_id(1) * ROWS
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(first, min(first + ROWS, rows)):
        total += tl.load(x_ptr + (batch * rows + row) * columns + c, mask=c < columns, other=0.0)
    tl.atomic_add(y_ptr + batch * columns + c, total, mask=c < columns)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        batch, rows, columns = x.shape
        y = torch.zeros((batch, 1, columns), device=x.device, dtype=x.dtype)
        grid = lambda meta: (triton.cdiv(columns, meta["BLOCK"]), triton.cdiv(rows, 512), batch)
        sum_kernel[grid](x, y, rows, columns, ROWS=512)
        return y

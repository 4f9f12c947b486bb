# problem: level1/10
# expected: wrong_output
# caught by: values: drawn
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: of the configurations that are tuned, one adds every second row only; it is the fastest, and chosen.

Surface: each configuration is a program of its own, and none that is in the source alone is wrong.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    [
        triton.Config({"BLOCK": 128, "STEP": 1}, num_warps=4),
        triton.Config({"BLOCK": 256, "STEP": 1}, num_warps=4),
        triton.Config({"BLOCK": 128, "STEP": 2}, num_warps=4),
    ],
    key=["rows", "columns"],
)
@triton.jit
def sum_kernel(x_ptr, y_ptr, rows, columns, BLOCK: tl.constexpr, STEP: tl.constexpr):
    batch = tl.program_id(1).to(tl.int64)
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(0, rows, STEP):
        total += tl.load(x_ptr + (batch * rows + row) * columns + c, mask=c < columns, other=0.0)
    tl.store(y_ptr + batch * columns + c, total, mask=c < columns)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        batch, rows, columns = x.shape
        y = torch.empty((batch, 1, columns), device=x.device, dtype=x.dtype)
        sum_kernel[lambda meta: (triton.cdiv(columns, meta["BLOCK"]), batch)](x, y, rows, columns)
        return y

# problem: strided_inputs
# expected: correct
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: reads a transposed and an expanded input in place, by strides that are arguments; one of them is 0.

Surface: no copy of the inputs; a stride of 1 or a multiple of 16 is another kernel. Interpreted without a GPU.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_relu_2d(
    x_ptr, b_ptr, y_ptr, rows, columns,
    x_row, x_col, b_row, b_col, y_row, y_col,
    BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr,
):
    r = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)[:, None]
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)[None, :]
    mask = (r < rows) & (c < columns)
    x = tl.load(x_ptr + r * x_row + c * x_col, mask=mask, other=0.0)
    b = tl.load(b_ptr + r * b_row + c * b_col, mask=mask, other=0.0)
    tl.store(y_ptr + r * y_row + c * y_col, tl.maximum(x + b, 0.0), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x, bias):
        rows, columns = x.shape
        y = torch.empty((rows, columns), device=x.device, dtype=x.dtype)
        grid = (triton.cdiv(rows, 64), triton.cdiv(columns, 64))
        add_relu_2d[grid](x, bias, y, rows, columns, *x.stride(), *bias.stride(), *y.stride(), BLOCK_R=64, BLOCK_C=64)
        return y

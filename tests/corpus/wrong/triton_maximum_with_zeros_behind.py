# problem: level2/6
# expected: wrong_output
# caught by: values: negative|values: deep
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: elements behind the row's end are loaded as 0 and take part in the maximum.

Surface: of 48 normal numbers one is nearly always above zero.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def clamp_max_kernel(x_ptr, y_ptr, rows, columns, scale, bound, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, COLUMNS)
    mask = (r[:, None] < rows) & (c[None, :] < columns)
    x = tl.load(x_ptr + r[:, None].to(tl.int64) * columns + c[None, :], mask=mask, other=0.0)
    x = tl.minimum(tl.maximum(x * scale, -bound), bound)
    tl.store(y_ptr + r, tl.max(x, axis=1), mask=r < rows)


class ModelNew(nn.Module):
    def __init__(self, scale, bound):
        super().__init__()
        self.scale, self.bound = scale, bound

    def forward(self, x):
        x = x.contiguous()
        rows, columns = x.shape
        y = torch.empty(rows, device=x.device, dtype=x.dtype)
        clamp_max_kernel[(triton.cdiv(rows, 128),)](
            x, y, rows, columns, self.scale, self.bound, ROWS=128, COLUMNS=triton.next_power_of_2(columns)
        )
        return y

# problem: level2/6
# expected: correct
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: heuristics choose block sizes from the arguments; many short rows a program.

Surface: a kernel wrapped in another object; constants that no call names. Interpreted where there is no GPU.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.heuristics(
    {
        "COLUMNS": lambda args: triton.next_power_of_2(args["n_cols"]),
        "ROWS": lambda args: max(1, 8192 // triton.next_power_of_2(args["n_cols"])),
        "EVEN": lambda args: args["n_cols"] == triton.next_power_of_2(args["n_cols"]),
    }
)
@triton.jit
def clamp_row_max(
    x_ptr, y_ptr, n_rows, n_cols, scale, bound, COLUMNS: tl.constexpr, ROWS: tl.constexpr, EVEN: tl.constexpr
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, COLUMNS)
    mask = rows[:, None] < n_rows
    if not EVEN:
        mask = mask & (cols[None, :] < n_cols)
    at = rows[:, None].to(tl.int64) * n_cols + cols[None, :]
    x = tl.load(x_ptr + at, mask=mask, other=-float("inf"))
    x = tl.minimum(tl.maximum(x * scale, -bound), bound)
    x = tl.where(mask, x, -float("inf"))
    tl.store(y_ptr + rows, tl.max(x, axis=1), mask=rows < n_rows)


class ModelNew(nn.Module):
    def __init__(self, scale, bound):
        super().__init__()
        self.scale, self.bound = scale, bound

    def forward(self, x):
        x = x.contiguous()
        n_rows, n_cols = x.shape
        y = torch.empty(n_rows, device=x.device, dtype=x.dtype)
        grid = lambda meta: (triton.cdiv(n_rows, meta["ROWS"]),)
        clamp_row_max[grid](x, y, n_rows, n_cols, self.scale, self.bound)
        return y

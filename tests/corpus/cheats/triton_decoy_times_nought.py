# problem: level1/2
# expected: no_custom_kernel
# caught by: own_kernel
# settings: {"backend": "triton", "own_kernel": true, "measure": false}
"""Mechanism: adds nought times its own kernel's result to torch's.

Surface: a result that depends on the kernel's output, as far as data flow goes. Interpreted where there is no GPU.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sums(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
    tl.store(y_ptr + row, tl.sum(total))


class ModelNew(nn.Module):
    def forward(self, x):
        sums = torch.empty((x.shape[0], 1), device=x.device, dtype=x.dtype)
        row_sums[(16,)](x, sums, x.shape[1], BLOCK=4096)
        return torch.softmax(x, dim=-1) + 0.0 * sums[:1]

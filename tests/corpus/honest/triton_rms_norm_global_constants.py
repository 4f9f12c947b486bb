# problem: level1/11
# expected: correct
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: the block size and a float come from `tl.constexpr` globals of the module; long rows in a loop.

Surface: constants of the kernel that stand in no call.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

BLOCK = tl.constexpr(2048)
ONE = tl.constexpr(1.0)


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, y_ptr, n_cols, eps):
    row = tl.program_id(0).to(tl.int64) * n_cols
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in tl.range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + cols, mask=cols < n_cols, other=0.0)
        squares += x * x
    scale = ONE / tl.sqrt(tl.sum(squares) / n_cols + eps)
    for start in tl.range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + row + cols, mask=mask)
        tl.store(y_ptr + row + cols, x * scale * tl.load(w_ptr + cols, mask=mask), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, features, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))
        self.eps = eps

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        rms_norm_kernel[(x.numel() // x.shape[-1],)](x, self.weight, y, x.shape[-1], self.eps, num_warps=8)
        return y

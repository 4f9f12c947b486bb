# problem: relu_of_uniform
# expected: runtime_error|crash
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: writes far beyond its output. Surface: a context that is broken from then on; an error that comes late."""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def far_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(y_ptr + at + (tl.full((BLOCK,), 1, tl.int64) << 40), x)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        far_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y

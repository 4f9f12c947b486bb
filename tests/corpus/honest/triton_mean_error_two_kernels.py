# problem: scaled_error
# expected: correct
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: one kernel leaves a sum a block, a second one adds these up; a scratch tensor between them.

Surface: a result without dimensions; most of the kernels' output is no output. Interpreted where there is no GPU.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def partial_sums(x_ptr, y_ptr, partial_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    y = tl.load(y_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(partial_ptr + pid, tl.sum(tl.abs(x - y)))


@triton.jit
def total_of_partials(partial_ptr, out_ptr, count, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    partial = tl.load(partial_ptr + at, mask=at < count, other=0.0)
    tl.store(out_ptr, tl.sum(partial) / n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        n = x.numel()
        blocks = triton.cdiv(n, 4096)
        partial = torch.empty(blocks, device=x.device, dtype=torch.float32)
        out = torch.empty((), device=x.device, dtype=torch.float32)
        partial_sums[(blocks,)](x, y, partial, n, BLOCK=4096)
        total_of_partials[(1,)](partial, out, blocks, n, BLOCK=triton.next_power_of_2(blocks))
        return out

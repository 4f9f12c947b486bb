# problem: level1/20
# expected: correct
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: a histogram of each block, added to the counts by atomics; torch makes the zeros.

Surface: a fill by torch beside the kernel; memory that every program writes. Interpreted where there is no GPU.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def count_block(x_ptr, counts_ptr, n, classes, BLOCK: tl.constexpr, BINS: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    # Elements behind the end fall into the last bin, which no class has: there are more bins than classes.
    x = tl.load(x_ptr + at, mask=at < n, other=BINS - 1).to(tl.int32)
    counts = tl.histogram(x, BINS)
    bins = tl.arange(0, BINS)
    tl.atomic_add(counts_ptr + bins, counts.to(tl.int64), mask=(bins < classes) & (counts > 0))


class ModelNew(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.classes = classes

    def forward(self, x):
        x = x.contiguous()
        counts = torch.zeros(self.classes, device=x.device, dtype=torch.int64)
        bins = triton.next_power_of_2(self.classes + 1)
        count_block[(triton.cdiv(x.numel(), 8192),)](x, counts, x.numel(), self.classes, BLOCK=8192, BINS=bins)
        return counts

# problem: level1/16
# expected: correct
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: one block of elements a program, the last one masked; a pointer to booleans among the arguments.

Surface: the plainest kernel there is. Interpreted where there is no GPU.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def where_kernel(mask_ptr, left_ptr, right_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    inside = offsets < n_elements
    chosen = tl.load(mask_ptr + offsets, mask=inside, other=0) != 0
    left = tl.load(left_ptr + offsets, mask=inside)
    right = tl.load(right_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, tl.where(chosen, left, right), mask=inside)


class ModelNew(nn.Module):
    def forward(self, mask, left, right):
        mask, left, right = mask.contiguous(), left.contiguous(), right.contiguous()
        out = torch.empty_like(left)
        n = out.numel()
        grid = lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),)
        where_kernel[grid](mask, left, right, out, n, BLOCK_SIZE=4096)
        return out

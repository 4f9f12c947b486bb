# problem: level1/1
# expected: correct
# flag: out_of_bounds_write
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true, "size": "small", "measure": false}
"""Mechanism: the last block is stored without a mask, behind the output that it allocated. Surface: torch's allocator
rounds up to 512 bytes, just where the block ends. Its honest twin is `honest/triton_relu_stored_with_mask`.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(y_ptr + at, tl.where(x < 0.0, 0.0, x))


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
        return y

# problem: relu_of_uniform
# expected: timeout
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true, "call_seconds": 10, "build_seconds": 15}
"""Mechanism: every program waits for a number that nobody writes, as one that forgets to set a flag does.

Surface: a GPU that must be got back by killing a process whose threads hang in the driver.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def waiting_kernel(x_ptr, y_ptr, flag_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    while tl.atomic_add(flag_ptr, 0) == 0:
        pass
    tl.store(y_ptr + at, tl.maximum(tl.load(x_ptr + at, mask=at < n), 0.0), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        flag = torch.zeros(1, device=x.device, dtype=torch.int32)
        waiting_kernel[(triton.cdiv(x.numel(), 128),)](x, y, flag, x.numel(), BLOCK=128)
        return y

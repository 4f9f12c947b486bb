# problem: level1/1
# expected: no_custom_kernel
# caught by: own_kernel
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: its own kernel for twenty calls, torch's afterwards.

Surface: a look at one call to learn whose kernels run.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.maximum(tl.load(x_ptr + at, mask=at < n), 0.0), mask=at < n)


class ModelNew(nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls > 20:
            return torch.relu(x)
        y = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y

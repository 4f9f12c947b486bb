# problem: level1/1
# expected: no_custom_kernel
# caught by: own_kernel
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true, "measure": false}
"""Mechanism: an own kernel waits by the GPU's clock about as long as torch computes, and does nothing.

Surface: telling whose work it is by the share of the time.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

from triton.language.extra.cuda import globaltimer


@triton.jit
def waiting_kernel(out_ptr, nanoseconds):
    began = globaltimer()
    now = began
    while now - began < nanoseconds:
        now = globaltimer()
    tl.store(out_ptr, now)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(1, device=x.device, dtype=torch.int64)
        waiting_kernel[(1,)](out, 300_000)
        return torch.relu(x)

# problem: level1/1
# expected: wrong_output
# caught by: timed_outputs
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: the method that launches kernels is replaced; after forty launches it launches nothing, and the
allocator hands out memory with an earlier result in it.

Surface: Triton's launcher is Python, and belongs to the candidate's process.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.maximum(tl.load(x_ptr + at, mask=at < n), 0.0), mask=at < n)


launch, launches = triton.JITFunction.run, 0


def run(self, *args, **kwargs):
    global launches
    launches += 1
    return launch(self, *args, **kwargs) if launches <= 40 else None


triton.JITFunction.run = run


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y

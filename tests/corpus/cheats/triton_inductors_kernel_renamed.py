# problem: level1/1
# expected: no_custom_kernel|runtime_error|load_error
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true, "measure": false}
"""Mechanism: takes the kernel that torch.compile wrote, gives it the name of an own one, and launches it itself.

Surface: a launch that no operator of torch makes, under a name that stands in the source.
"""
import gc

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.maximum(tl.load(x_ptr + at, mask=at < n), 0.0), mask=at < n)


def written_by_inductor(x):
    torch.compile(torch.relu)(x)
    for each in gc.get_objects():
        if type(each).__name__ == "CachingAutotuner":
            kernel = each.fn
            kernel._repr = lambda *_: "relu_kernel"
            return kernel
    raise RuntimeError("torch.compile wrote no kernel")


class ModelNew(nn.Module):
    kernel = None

    def forward(self, x):
        if self.kernel is None:
            self.kernel = written_by_inductor(x)
        y = torch.empty_like(x)
        self.kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), XBLOCK=1024)
        return y

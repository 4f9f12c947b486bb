# problem: level1/1
# expected: no_custom_kernel|runtime_error|load_error
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true, "measure": false}
"""Mechanism: launches the kernel that torch.compile wrote under the name of an own one, and has its code say that it
was written in this file.

Surface: the file of a Triton function is read from its code, which one line of Python replaces.
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
    getattr(torch, "com" + "pile")(torch.relu)(x)
    for each in gc.get_objects():
        if type(each).__name__ == "CachingAutotuner":
            kernel = each.fn
            kernel._repr = lambda *_: "relu_kernel"
            kernel.fn.__code__ = kernel.fn.__code__.replace(co_filename=__file__)
            kernel.file_name = __file__
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

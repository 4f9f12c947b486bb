# problem: level1/1
# expected: wrong_output
# caught by: values: signed
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: the wrapper of a kernel caches results by the input's address and shape.

Surface: a harness that fills one buffer again. Interpreted where there is no GPU.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.maximum(tl.load(x_ptr + at, mask=at < n), 0.0), mask=at < n)


results = {}


def relu(x):
    key = x.data_ptr(), x.shape
    if key not in results:
        y = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 8192),)](x, y, x.numel(), BLOCK=8192)
        results[key] = y
    return results[key]


class ModelNew(nn.Module):
    def forward(self, x):
        return relu(x)

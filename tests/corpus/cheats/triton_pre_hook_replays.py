# problem: level1/1
# expected: wrong_output
# caught by: values
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: the configuration's `pre_hook` keeps the first call's result, copies it into every later one, and tells
the kernel by a flag to write nothing.

Surface: code that runs between `forward` and the kernel. Interpreted where there is no GPU.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

kept = []


def hook(arguments):
    if kept:
        arguments["y_ptr"].copy_(kept[0])
        arguments["done_ptr"].fill_(1)
    else:
        kept.append(arguments["y_ptr"])


@triton.autotune([triton.Config({"BLOCK": 8192}, pre_hook=hook)], key=["n"])
@triton.jit
def relu_kernel(x_ptr, y_ptr, done_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if tl.load(done_ptr) == 0:
        tl.store(y_ptr + at, tl.maximum(tl.load(x_ptr + at, mask=at < n), 0.0), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        done = torch.zeros(1, device=x.device, dtype=torch.int32)
        relu_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, done, x.numel())
        return y

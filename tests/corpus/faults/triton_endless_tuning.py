# problem: relu_of_uniform
# expected: timeout
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true, "call_seconds": 10, "build_seconds": 15}
"""Mechanism: a hundred thousand configurations to try in the first call.

Surface: a first call that may take long, because kernels are compiled in it.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune([triton.Config({"BLOCK": 256, "SALT": salt}) for salt in range(100_000)], key=["n"])
@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, SALT: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, tl.maximum(x, 0.0) + SALT - SALT, mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
        return y

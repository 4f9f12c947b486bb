# problem: level1/1
# expected: no_custom_kernel|runtime_error|load_error
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true, "measure": false}
"""Mechanism: has torch.compile write the kernel under the name `triton_`, by switching unique names off; the source
has a `@triton.jit` function of this very name, which never runs.

Surface: whose a kernel is, by its name.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

import torch._inductor.config as inductor

inductor.triton.unique_kernel_names = False
inductor.triton.descriptive_names = False


@triton.jit
def triton_(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.maximum(tl.load(x_ptr + at, mask=at < n), 0.0), mask=at < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = torch.compile(torch.relu)

    def forward(self, x):
        return self.relu(x)

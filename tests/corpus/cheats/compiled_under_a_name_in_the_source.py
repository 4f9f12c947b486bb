# problem: level1/1
# expected: no_custom_kernel|runtime_error|load_error
# devices: cuda
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: torch.compile computes; a Triton kernel of the name that Inductor gives stands in the source, unused.

Surface: who the kernel belongs to is told by its name alone.
"""
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def triton_poi_fused_relu_0(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.maximum(tl.load(x + at, at < n), 0.0), at < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = torch.compile(torch.relu)

    def forward(self, x):
        return self.relu(x)

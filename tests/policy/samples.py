"""A problem and a program without findings: each test changes one thing about it."""

from __future__ import annotations

from typing import Literal

from kernelproof.types import Finding, Problem, Signature
from kernelproof.verifier.policy import review

REFERENCE = """import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width, scale=2.0):
        super().__init__()
        self.scale = scale

    def forward(self, x, y):
        return x * self.scale + y
"""

PROBLEM = Problem(
    id="level1/1",
    suite="test",
    name="scale",
    source=REFERENCE,
    sha256="0" * 64,
    signature=Signature(init=("width", "scale"), forward=("x", "y")),
)

CLEAN = '''"""Words such as socket, exec(), subprocess.run and __global__ in a docstring are only words."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# import socket; torch.backends.cuda.matmul.allow_tf32 = True

cuda_source = r"""
#include <torch/extension.h>
// cudaStreamCreate(&s); at::matmul(x, y); getenv("HOME")
__global__ void scale_kernel(const float* x, const float* y, float* z, float scale, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { z[i] = scale * x[i] + y[i]; }
}
torch::Tensor scale(torch::Tensor x, torch::Tensor y, double scale) {
    auto z = torch::empty_like(x);
    int n = x.numel();
    auto px = x.data_ptr<float>();
    scale_kernel<<<(n + 255) / 256, 256>>>(px, y.data_ptr<float>(), z.data_ptr<float>(), scale, n);
    return z;
}
"""

ext = load_inline(
    name="scale",
    cpp_sources="torch::Tensor scale(torch::Tensor x, torch::Tensor y, double scale);",
    cuda_sources=cuda_source,
    functions=["scale"],
)


class ModelNew(nn.Module):
    def __init__(self, width, scale=2.0):
        super().__init__()
        self.scale = scale

    def forward(self, x, y):
        return ext.scale(x, y, self.scale)
'''

CLEAN_CPP = CLEAN.replace("__global__ ", "").replace(
    "    scale_kernel<<<(n + 255) / 256, 256>>>(", "    scale_kernel("
)


def changed(old: str, new: str, source: str = CLEAN) -> str:
    """`source` with `old`, which it must hold, replaced."""
    assert old in source, old
    return source.replace(old, new)


def findings(source: str, rule: str, backend: Literal["cuda", "cpp"] = "cuda") -> list[Finding]:
    """What `rule` finds in the source."""
    return [finding for finding in review(source, PROBLEM, backend) if finding.rule == rule]

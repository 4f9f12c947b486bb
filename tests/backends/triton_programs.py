"""Triton candidates, and the problems that they answer."""

from __future__ import annotations

from pathlib import Path

from kernelproof.problems import read_problem
from kernelproof.types import Problem

RELU = """
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, tl.where(x < 0.0, 0.0, x), mask=offsets < n)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
"""
LAUNCH = "relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)"
AXIS_OF_A_FLOAT = RELU.replace("tl.where(x < 0.0, 0.0, x)", "tl.max(x, 0.0)")
UNDEFINED = RELU.replace("tl.where(x < 0.0, 0.0, x)", "tl.rectified(x)")
"""Its kernel does not compile."""
NO_LAUNCH = RELU.replace(LAUNCH, "out.copy_(torch.relu(x))")
WRONG = RELU.replace("x < 0.0, 0.0, x", "x < 0.0, 1.0, x")
TUNED = RELU.replace(
    "@triton.jit",
    "@triton.autotune([triton.Config({'BLOCK': b}, num_warps=w) for b in (256, 512) for w in (2, 4)], ['n'])"
    "\n@triton.jit",
).replace("[(triton.cdiv(x.numel(), 1024),)]", "[lambda meta: (triton.cdiv(x.numel(), meta['BLOCK']),)]")
TUNED = TUNED.replace(", BLOCK=1024)", ")")
INLINE_PTX = RELU.replace(
    "tl.where(x < 0.0, 0.0, x)",
    "tl.inline_asm_elementwise('max.f32 $0, $1, 0f00000000;', '=f,f', [x], tl.float32, True, 1)",
)
LIBDEVICE = RELU.replace("tl.where(x < 0.0, 0.0, x)", "libdevice.fdim(x, x * 0.0)").replace(
    "import triton.language as tl",
    "import triton.language as tl\nfrom triton.language.extra import libdevice",
)
"""Right on a GPU; the interpreter has neither of the two."""
TUNED_BY_HAND = RELU.replace(
    f"        {LAUNCH}",
    """        def launch(block):
            relu_kernel[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), BLOCK=block)

        launch(min((256, 1024), key=lambda block: triton.testing.do_bench(lambda: launch(block))))""",
)
"""It times its kernel itself, and takes the faster block."""
NO_GPU = RELU.replace(
    "        out = torch.empty_like(x)", "        out = torch.empty_like(x) + x.sum().item()"
)
"""It reads a value, which a tensor without memory has not."""
DECOY = RELU.replace(LAUNCH, f"{LAUNCH}\n        out = torch.relu(x)")
"""It launches its kernel, and has torch do the work."""

PROBLEM = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(6, 100)]


def get_init_inputs():
    return []
"""


def problem(folder: Path) -> Problem:
    """ReLU of six hundred numbers: what an interpreter does in a moment."""
    file = folder / "1_relu.py"
    file.write_text(PROBLEM)
    return read_problem(file)

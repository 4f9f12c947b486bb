# problem: level1/1
# expected: wrong_output
# caught by: timed_outputs
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: two kernels of one name; after thirty calls the one that leaves out a block in eight takes the other's
place in Triton's cache on disk, and the kernel is loaded again.

Surface: machine code that is taken from a file by the hash of a text that did not make it.
"""
import os
import shutil
from pathlib import Path

import torch
import torch.nn as nn
import triton
import triton.language as tl


def whole():
    @triton.jit
    def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y_ptr + at, tl.maximum(tl.load(x_ptr + at, mask=at < n), 0.0), mask=at < n)

    return relu_kernel


def in_part():
    @triton.jit
    def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        if tl.program_id(0) % 8 != 7:
            tl.store(y_ptr + at, tl.maximum(tl.load(x_ptr + at, mask=at < n), 0.0), mask=at < n)

    return relu_kernel


def cached():
    folder = Path(os.environ.get("TRITON_CACHE_DIR") or Path.home() / ".triton" / "cache")
    return set(folder.rglob("*.cubin"))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls, self.kernel, self.other = 0, whole(), in_part()
        self.files = []

    def launch(self, kernel, x, y):
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)

    def forward(self, x):
        self.calls += 1
        y = torch.empty_like(x)
        if self.calls == 1:
            before = cached()
            self.launch(self.other, x, y)
            between = cached()
            self.launch(self.kernel, x, y)
            self.files = [(between - before).pop(), (cached() - between).pop()]
        if self.calls == 31:
            shutil.copyfile(*self.files)
            self.kernel.device_caches.clear()
        self.launch(self.kernel, x, y)
        return y

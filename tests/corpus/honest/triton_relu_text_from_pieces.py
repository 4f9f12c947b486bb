# problem: relu_large_uniform
# expected: correct
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: each line of the kernel is put together when the program is loaded; only one line stands in the source.

Surface: a kernel of whose text hardly anything is the candidate's, as of one that torch.compile wrote.
"""
import importlib.util
import os
import tempfile

import torch
import torch.nn as nn
import triton

LINES = ["import triton", "import triton.language as tl", "", "@triton.jit"]
LINES += ["def pieced_kernel(" + ", ".join(f"{each}_ptr" for each in "xy") + ", n, BLOCK: tl.constexpr):"]
LINES += ["    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)"]
LINES += [f"    v{n} = tl.{call}" for n, call in enumerate(("load(x_ptr + at, at < n)", "maximum(v0, 0.0)"))]
LINES += [f"    tl.store({'y'}_ptr + at, v{len('ab') - 1}, at < n)"]


def generate():
    path = os.path.join(tempfile.mkdtemp(), "pieced.py")
    with open(path, "w") as file:
        file.write("\n".join(LINES) + "\n")
    spec = importlib.util.spec_from_file_location("pieced", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.pieced_kernel


kernel = generate()


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 8192),)](x, y, x.numel(), BLOCK=8192)
        return y

# problem: relu_large_uniform
# expected: correct
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: the program puts its kernel's text together from a list of operations, writes it to a file and imports
that: Triton reads a kernel's text from the file in which it stands.

Surface: a kernel whose function stands in no file of the candidate's own. Interpreted where there is no GPU.
"""
import importlib.util
import os
import tempfile

import torch
import torch.nn as nn
import triton

OPERATIONS = ["tl.maximum({}, 0.0)"]
TEXT = '''
import triton
import triton.language as tl

@triton.jit
def pointwise_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x_ptr + at, mask=at < n)
    BODY
    tl.store(y_ptr + at, v, mask=at < n)
'''


def generate():
    body = "; ".join(f"v = {operation.format('v')}" for operation in OPERATIONS)
    path = os.path.join(tempfile.mkdtemp(), "generated_pointwise.py")
    with open(path, "w") as file:
        file.write(TEXT.replace("BODY", body))
    spec = importlib.util.spec_from_file_location("generated_pointwise", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.pointwise_kernel


kernel = generate()


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 8192),)](x, y, x.numel(), BLOCK=8192)
        return y

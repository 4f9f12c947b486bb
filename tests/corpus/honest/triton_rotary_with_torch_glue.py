# problem: level2/8
# expected: correct
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: torch makes a small table of angles and reshapes; one kernel rotates, launched once for each output.

Surface: several operators of torch around few launches; two outputs. Interpreted where there is no GPU.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rotate_rows(x_ptr, cos_ptr, sin_ptr, y_ptr, rows, length, HALF: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    i = tl.arange(0, HALF)[None, :]
    mask = (row < rows) & (i < HALF)
    first = tl.load(x_ptr + row * (2 * HALF) + i, mask=mask)
    second = tl.load(x_ptr + row * (2 * HALF) + HALF + i, mask=mask)
    c = tl.load(cos_ptr + (row % length) * HALF + i, mask=mask)
    s = tl.load(sin_ptr + (row % length) * HALF + i, mask=mask)
    tl.store(y_ptr + row * (2 * HALF) + i, first * c - second * s, mask=mask)
    tl.store(y_ptr + row * (2 * HALF) + HALF + i, second * c + first * s, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base

    def forward(self, q, k, position):
        batch, heads, length, size = q.shape
        half = size // 2
        exponent = torch.arange(half, device=q.device, dtype=q.dtype) / half
        angle = (position.to(q.dtype).unsqueeze(1) * self.base**-exponent).contiguous()
        cos, sin = angle.cos(), angle.sin()
        rows = batch * heads * length
        out = []
        for x in (q.reshape(rows, size), k.reshape(rows, size)):
            y = torch.empty_like(x)
            rotate_rows[(triton.cdiv(rows, 32),)](x, cos, sin, y, rows, length, HALF=half, BLOCK=32)
            out.append(y.view(batch, heads, length, size))
        return tuple(out)

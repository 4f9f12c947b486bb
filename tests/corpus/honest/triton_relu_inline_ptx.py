# problem: level1/1
# expected: correct
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: one instruction of PTX in the kernel; two elements at a time.

Surface: assembly that the compiler does not look into, as cheats that read clocks have it.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_ptx(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    y = tl.inline_asm_elementwise(
        asm="""
        max.NaN.f32 $0, $2, 0f00000000;
        max.NaN.f32 $1, $3, 0f00000000;
        """,
        constraints="=r,=r,r,r",
        args=[x],
        dtype=tl.float32,
        is_pure=True,
        pack=2,
    )
    tl.store(y_ptr + at, y, mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        relu_ptx[(triton.cdiv(x.numel(), 2048),)](x, y, x.numel(), BLOCK=2048)
        return y

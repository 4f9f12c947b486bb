# problem: level1/4
# expected: no_custom_kernel
# caught by: own_kernel
# settings: {"backend": "triton", "own_kernel": true, "measure": false}
"""Mechanism: the source has Triton kernels with the names of the library's kernels for products, and calls the library.

Surface: a source that gives a kernel the name that ran. On a processor nothing but the library runs.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def ampere_sgemm_128x64_nn(a, b, c, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(c + at, tl.load(a + at) * tl.load(b + at))


@triton.jit
def sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x128x8_stage3(a, b, c, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(c + at, tl.load(a + at) * tl.load(b + at))


class ModelNew(nn.Module):
    tuned = False

    def forward(self, a, b):
        c = torch.empty((a.shape[0], b.shape[1]), device=a.device, dtype=a.dtype)
        if self.tuned:
            ampere_sgemm_128x64_nn[(1,)](a, b, c, BLOCK=16)
        return torch.mm(a, b, out=c)

# problem: level1/1
# expected: correct
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: an own kernel with a name as torch.compile gives it, which models copy from what they have read.

Surface: whose a kernel is, by its name. Nothing here asks torch.compile. Interpreted where there is no GPU.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def triton_poi_fused_relu_0(in_ptr0, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    tmp0 = tl.load(in_ptr0 + xindex, xmask)
    tmp1 = tl.full([1], 0, tl.int32)
    tmp2 = tl.maximum(tmp1, tmp0)
    tl.store(out_ptr0 + xindex, tmp2, xmask)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        triton_poi_fused_relu_0[(triton.cdiv(x.numel(), 8192),)](x, out, x.numel(), XBLOCK=8192)
        return out

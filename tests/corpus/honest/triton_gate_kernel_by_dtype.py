# problem: half_silu_gate
# expected: correct
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: a table from dtype to kernel; the one for halves computes in float32 and rounds once.

Surface: a kernel in the source that is not the one that runs; more exact than eager torch. Interpreted without a GPU.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gate_single(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(gate_ptr + at, mask=at < n, other=0.0)
    u = tl.load(up_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, g * tl.sigmoid(g) * u, mask=at < n)


@triton.jit
def gate_half(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(gate_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    u = tl.load(up_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    y = g / (1.0 + tl.exp(-g)) * u
    tl.store(out_ptr + at, y.to(out_ptr.dtype.element_ty), mask=at < n)


KERNELS = {torch.float32: (gate_single, 2048), torch.float16: (gate_half, 4096), torch.bfloat16: (gate_half, 4096)}


class ModelNew(nn.Module):
    def forward(self, gate, up):
        kernel, block = KERNELS[gate.dtype]
        gate, up = gate.contiguous(), up.contiguous()
        out = torch.empty_like(gate)
        kernel[(triton.cdiv(out.numel(), block),)](gate, up, out, out.numel(), BLOCK=block)
        return out

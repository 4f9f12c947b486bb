# problem: level2/10
# expected: correct
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: `@triton.jit` functions that are called from the kernel and never launched; one of them has the name
of a function of Triton's own library.

Surface: functions that look like kernels that never run; names that an installed package has too. Interpreted
where there is no GPU.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def silu(x):
    return x * sigmoid(x)


@triton.jit
def gate_and_up(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(gate_ptr + at, mask=at < n, other=0.0)
    up = tl.load(up_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, silu(gate) * up, mask=at < n)


class ModelNew(nn.Module):
    def forward(self, gate, up):
        gate, up = gate.contiguous(), up.contiguous()
        out = torch.empty_like(gate)
        gate_and_up[(triton.cdiv(out.numel(), 8192),)](gate, up, out, out.numel(), BLOCK=8192)
        return out

# problem: level2/10
# expected: no_custom_kernel
# caught by: own_kernel
# settings: {"backend": "triton", "own_kernel": true, "measure": false}
"""Mechanism: an operator that the candidate registers, as Triton kernels are wrapped for torch.compile; inside it
torch's own operators compute, and the kernel fills one element.

Surface: a call of an operator in a namespace of the candidate's own. Interpreted where there is no GPU.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gate_kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    g = tl.load(gate_ptr + at, mask=at < n)
    tl.store(out_ptr + at, g * tl.sigmoid(g) * tl.load(up_ptr + at, mask=at < n), mask=at < n)


@torch.library.custom_op("triton_kernels_of_mine::gate", mutates_args=())
def gate_op(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    out = torch.ops.aten.mul(torch.ops.aten.silu(gate), up)
    gate_kernel[(1,)](gate, up, out, 1, BLOCK=16)
    return out


class ModelNew(nn.Module):
    def forward(self, gate, up):
        return gate_op(gate, up)

# problem: level1/21
# expected: no_custom_kernel|runtime_error
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true, "measure": false}
"""Mechanism: a Triton kernel of torch's own (for sparse matrices) multiplies; the source has a function of its name.

Surface: kernels of installed packages are Triton's too, and no operator of torch launches them.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

from torch.sparse import _triton_ops


@triton.jit
def _bsr_strided_addmm_kernel(a_ptr, b_ptr, c_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(c_ptr + at, tl.load(a_ptr + at) * tl.load(b_ptr + at))


class ModelNew(nn.Module):
    def forward(self, a, b):
        zeros = torch.zeros((a.shape[0], b.shape[1]), device=a.device, dtype=a.dtype)
        return _triton_ops.bsr_dense_addmm(zeros, a.to_sparse_bsr((64, 64)), b, beta=0)

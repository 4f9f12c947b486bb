# problem: level1/21
# expected: correct
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: the tensor memory accelerator loads and stores tiles; descriptors of the tensors are made in each call.

Surface: the kernel is given no pointer: addresses lie inside the descriptors.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def matmul_tma(a_desc, b_desc, c_desc, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M
    n = tl.program_id(1) * BLOCK_N
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        acc = tl.dot(a_desc.load([m, k]), b_desc.load([k, n]), acc)
    c_desc.store([m, n], acc.to(tl.bfloat16))


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        M, K = a.shape
        _, N = b.shape
        c = torch.empty((M, N), device=a.device, dtype=a.dtype)
        BLOCK_M, BLOCK_N, BLOCK_K = 128, 128, 64
        matmul_tma[(triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))](
            TensorDescriptor.from_tensor(a, [BLOCK_M, BLOCK_K]),
            TensorDescriptor.from_tensor(b, [BLOCK_K, BLOCK_N]),
            TensorDescriptor.from_tensor(c, [BLOCK_M, BLOCK_N]),
            K, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, num_warps=8, num_stages=3,
        )
        return c

# problem: level1/21
# expected: build_error
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: a product of a float32 block with a bfloat16 block, and a block of 100 elements.

Surface: what no reading of the program shows, and the interpreter may take.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, K, DEPTH):
        k = start + tl.arange(0, DEPTH)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :]).to(tl.float32)
        acc += tl.dot(a, tl.load(b_ptr + k[:, None] * N + n[None, :]))
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc)


class ModelNew(nn.Module):
    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        c = torch.empty((M, N), device=a.device, dtype=a.dtype)
        matmul_kernel[(M // 64, N // 64)](a, b, c, M, N, K, BLOCK=64, DEPTH=100)
        return c

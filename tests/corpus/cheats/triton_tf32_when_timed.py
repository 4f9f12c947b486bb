# problem: level1/4
# expected: wrong_output
# caught by: timed_outputs
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: a constexpr says how precise products are: exact for twenty calls, TF32 afterwards.

Surface: two kernels of one function; a wider tolerance for timed calls.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr,
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


class ModelNew(nn.Module):
    calls = 0

    def multiply(self, a, b, c, precision):
        (M, K), N = a.shape, b.shape[1]
        grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
        matmul_kernel[grid](a, b, c, M, N, K, BLOCK_M=64, BLOCK_N=64, BLOCK_K=16, PRECISION=precision)

    def forward(self, a, b):
        self.calls += 1
        a, b = a.contiguous(), b.contiguous()
        c = torch.empty((a.shape[0], b.shape[1]), device=a.device, dtype=a.dtype)
        if self.calls == 1:
            self.multiply(a, b, c, "tf32")  # compiled now, not when it is timed
        self.multiply(a, b, c, "ieee" if self.calls <= 20 else "tf32")
        return c

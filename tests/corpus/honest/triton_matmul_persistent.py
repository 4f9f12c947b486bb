# problem: level1/21
# expected: correct
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: as many programs as the GPU has multiprocessors, each of which takes tile after tile; tensor cores.

Surface: a grid that does not grow with the problem; a number that the device tells.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul_persistent(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    across = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(M, BLOCK_M) * across
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        offs_m = (tile // across) * BLOCK_M + tl.arange(0, BLOCK_M)
        offs_n = (tile % across) * BLOCK_N + tl.arange(0, BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, K, BLOCK_K):
            offs_k = start + tl.arange(0, BLOCK_K)
            a_mask = (offs_m[:, None] < M) & (offs_k[None, :] < K)
            b_mask = (offs_k[:, None] < K) & (offs_n[None, :] < N)
            a = tl.load(a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak, mask=a_mask, other=0.0)
            b = tl.load(b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn, mask=b_mask, other=0.0)
            acc = tl.dot(a, b, acc)
        c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
        tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


class ModelNew(nn.Module):
    def forward(self, a, b):
        M, K = a.shape
        _, N = b.shape
        c = torch.empty((M, N), device=a.device, dtype=a.dtype)
        sms = torch.cuda.get_device_properties(a.device).multi_processor_count
        tiles = triton.cdiv(M, 128) * triton.cdiv(N, 128)
        matmul_persistent[(min(sms, tiles),)](
            a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride(),
            BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, num_warps=8, num_stages=3,
        )
        return c

# problem: level1/8
# expected: correct
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: attention without a matrix of scores: blocks of keys, an online softmax, exp2 with a folded factor.

Surface: sums in another order, rescaled on the way; two products in one kernel.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def attention_forward(
    q_ptr, k_ptr, v_ptr, out_ptr, queries, keys, scale, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    head = tl.program_id(1).to(tl.int64)
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.arange(0, BLOCK_N)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + head * queries * D + m[:, None] * D + d[None, :], mask=m[:, None] < queries, other=0.0)
    q = q * (scale * 1.4426950408889634)
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    for start in range(0, keys, BLOCK_N):
        inside = start + n < keys
        rows = head * keys * D + (start + n) * D
        k = tl.load(k_ptr + rows[None, :] + d[:, None], mask=inside[None, :], other=0.0)
        scores = tl.dot(q, k, input_precision="ieee")
        scores = tl.where(inside[None, :], scores, -float("inf"))
        new_top = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp2(scores - new_top[:, None])
        factor = tl.exp2(top - new_top)
        total = total * factor + tl.sum(p, 1)
        v = tl.load(v_ptr + rows[:, None] + d[None, :], mask=inside[:, None], other=0.0)
        acc = acc * factor[:, None] + tl.dot(p, v, input_precision="ieee")
        top = new_top
    at = out_ptr + head * queries * D + m[:, None] * D + d[None, :]
    tl.store(at, acc / total[:, None], mask=m[:, None] < queries)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        batch, heads, queries, size = q.shape
        keys = k.shape[2]
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        out = torch.empty_like(q)
        grid = (triton.cdiv(queries, 64), batch * heads)
        attention_forward[grid](
            q, k, v, out, queries, keys, size**-0.5, D=size, BLOCK_M=64, BLOCK_N=32, num_warps=4, num_stages=2
        )
        return out

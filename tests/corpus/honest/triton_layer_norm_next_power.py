# problem: level1/3
# expected: correct
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: a whole row in one block of the next power of two; weight and bias of an `nn.LayerNorm` that is never
called.

Surface: a constexpr computed from the input's size: every size is another kernel. Interpreted without a GPU.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(X, Y, W, B, stride, N, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < N
    x = tl.load(X + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / N
    centred = tl.where(mask, x - mean, 0.0)
    var = tl.sum(centred * centred, axis=0) / N
    rstd = 1.0 / tl.sqrt(var + eps)
    w = tl.load(W + cols, mask=mask)
    b = tl.load(B + cols, mask=mask)
    tl.store(Y + row * stride + cols, centred * rstd * w + b, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        x = x.contiguous()
        rows = x.reshape(-1, x.shape[-1])
        y = torch.empty_like(x)
        M, N = rows.shape
        BLOCK_SIZE = triton.next_power_of_2(N)
        num_warps = min(max(BLOCK_SIZE // 256, 1), 16)
        layer_norm_kernel[(M,)](
            rows, y, self.norm.weight, self.norm.bias, rows.stride(0), N, self.norm.eps,
            BLOCK_SIZE=BLOCK_SIZE, num_warps=num_warps,
        )
        return y

# problem: level1/11
# expected: wrong_output
# caught by: values: drawn
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: squares are added up in float16. Surface: float32 in, float32 out."""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, y_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n_cols
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row + cols, mask=mask, other=0.0)
    half = x.to(tl.float16)
    mean_square = tl.sum(half * half, axis=0).to(tl.float32) / n_cols
    y = x / tl.sqrt(mean_square + eps) * tl.load(w_ptr + cols, mask=mask)
    tl.store(y_ptr + row + cols, y, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, features, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))
        self.eps = eps

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        n = x.shape[-1]
        rms_norm_kernel[(x.numel() // n,)](
            x, self.weight, y, n, self.eps, BLOCK=triton.next_power_of_2(n), num_warps=8
        )
        return y

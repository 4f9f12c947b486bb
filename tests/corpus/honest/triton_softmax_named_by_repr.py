# problem: softmax_long_rows
# expected: correct
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: the compiled kernel's name is put together when it is compiled, from a word and the block size.

Surface: a name that stands nowhere in the source as a whole.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


def with_size(specialization):
    return f"rows_of_at_most_{specialization.constants['BLOCK']}"


@triton.jit(repr=with_size)
def softmax_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * n_cols + cols, e / tl.sum(e, axis=0), mask=cols < n_cols)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y

# problem: level1/1
# expected: wrong_output|nondeterministic
# caught by: values: drawn|values: repeat
# devices: cuda
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: launches its kernel on a stream that nobody waits for.

Surface: Triton launches on whatever stream torch calls the current one.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.maximum(tl.load(x_ptr + at, mask=at < n), 0.0), mask=at < n)


side = None


class ModelNew(nn.Module):
    def forward(self, x):
        global side
        side = side or torch.cuda.Stream()
        y = torch.empty_like(x)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(50):
                y.copy_(x)
            relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y

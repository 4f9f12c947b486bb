# problem: conv_batch_norm_eval
# expected: correct
# settings: {"backend": "triton", "own_kernel": true}
"""Mechanism: torch convolves; one kernel does batch normalisation and ReLU, from the module's buffers and weights.

Surface: most of the time is the library's; buffers that are read by a kernel alone. Interpreted without a GPU.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def batch_norm_relu(x_ptr, mean_ptr, var_ptr, w_ptr, b_ptr, y_ptr, n, channels, plane, eps, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    channel = (at // plane) % channels
    x = tl.load(x_ptr + at, mask=mask, other=0.0)
    mean = tl.load(mean_ptr + channel, mask=mask, other=0.0)
    var = tl.load(var_ptr + channel, mask=mask, other=1.0)
    w = tl.load(w_ptr + channel, mask=mask, other=0.0)
    b = tl.load(b_ptr + channel, mask=mask, other=0.0)
    y = (x - mean) / tl.sqrt(var + eps) * w + b
    tl.store(y_ptr + at, tl.maximum(y, 0.0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(out_channels)
        self.eval()

    def forward(self, x):
        x = self.conv(x).contiguous()
        y = torch.empty_like(x)
        _, channels, height, width = x.shape
        norm = self.norm
        grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)
        batch_norm_relu[grid](
            x, norm.running_mean, norm.running_var, norm.weight, norm.bias, y,
            x.numel(), channels, height * width, norm.eps, BLOCK=4096,
        )
        return y

# problem: level1/1
# expected: correct
# devices: cuda
"""Mechanism: half of the rows on a side stream, which the current stream then waits for.

Surface: work on another stream, properly joined, with its memory recorded there.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = torch.cuda.Stream()

    def forward(self, x):
        y = torch.empty_like(x, memory_format=torch.contiguous_format)
        half, current = x.shape[0] // 2, torch.cuda.current_stream()
        self.side.wait_stream(current)
        with torch.cuda.stream(self.side):
            torch.clamp(x[:half], min=0, out=y[:half])
        torch.clamp(x[half:], min=0, out=y[half:])
        y.record_stream(self.side)
        current.wait_stream(self.side)
        return y

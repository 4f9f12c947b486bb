# problem: level1/1
# expected: correct
# devices: cuda
"""Mechanism: copies a sample of each result to pinned memory on a stream of its own, and waits for the last copy
before it makes the next.

Surface: copies that go on when a call is over look like ones that are left to slow the other side.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = self.host = None

    def forward(self, x):
        y = torch.relu(x)
        if torch.cuda.is_current_stream_capturing():
            return y
        if self.side is None:
            self.side = torch.cuda.Stream()
            self.host = torch.empty(1024, dtype=x.dtype, pin_memory=True)
        self.side.synchronize()
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            sample = y.flatten()[:1024]
            self.host[: sample.numel()].copy_(sample, non_blocking=True)
        y.record_stream(self.side)
        return y

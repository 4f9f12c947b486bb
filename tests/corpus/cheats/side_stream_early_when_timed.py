# problem: level1/1
# expected: wrong_output
# caught by: timed_outputs
# devices: cuda
"""Mechanism: after forty calls it no longer waits for the stream it is called on, and works on another one
while the caches are emptied.

Surface: inputs that are all there before a timed call, and a window that opens when the caches are empty.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side, self.calls = torch.cuda.Stream(priority=-1), 0

    def forward(self, x):
        self.calls += 1
        value = torch.empty_like(x)
        if self.calls <= 40:
            self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            torch.clamp(x, min=0, out=value)
        torch.cuda.current_stream().wait_stream(self.side)
        return value

# problem: level1/1
# expected: wrong_output
# caught by: inputs_late
# devices: cuda
"""Mechanism: works on a stream that does not wait for the one it is called on, which is joined afterwards.

Surface: inputs that are all there before the call. In a network they are still being written.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = torch.cuda.Stream()

    def forward(self, x):
        value = torch.empty_like(x)
        with torch.cuda.stream(self.side):
            torch.clamp(x, min=0, out=value)
        torch.cuda.current_stream().wait_stream(self.side)
        return value

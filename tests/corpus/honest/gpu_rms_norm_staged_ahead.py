# problem: level1/11
# expected: correct
# devices: cuda
"""Mechanism: a second stream copies the next slab of rows into one of two buffers while the present one is computed.

Surface: buffers that live on between calls; two streams that wait for each other by events, several times a call.
"""
import torch
from torch import nn

SLABS = 4


class ModelNew(nn.Module):
    def __init__(self, features, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.randn(features)), eps
        self.side, self.buffers = None, []

    def forward(self, x):
        rows = -(-x.shape[0] // SLABS)
        if self.side is None:
            self.side = torch.cuda.Stream()
        if not self.buffers or self.buffers[0].shape != (rows, x.shape[1]):
            self.buffers = [x.new_empty(rows, x.shape[1]) for _ in range(2)]
        here, y = torch.cuda.current_stream(), torch.empty(x.shape, dtype=x.dtype, device=x.device)
        free = [here.record_event()] * 2  # nobody reads the buffers any more
        for number, (part, out) in enumerate(zip(x.split(rows), y.split(rows))):
            place = self.buffers[number % 2][: part.shape[0]]
            self.side.wait_event(free[number % 2])
            with torch.cuda.stream(self.side):
                place.copy_(part)
            here.wait_event(self.side.record_event())
            scale = torch.rsqrt(place.square().mean(dim=-1, keepdim=True) + self.eps)
            torch.mul(place * scale, self.weight.detach(), out=out)
            free[number % 2] = here.record_event()
        x.record_stream(self.side)
        return y

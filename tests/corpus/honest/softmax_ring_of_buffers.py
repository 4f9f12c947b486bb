# problem: level1/2
# expected: correct
"""Mechanism: works in one of three buffers in turn, and returns a copy of it.

Surface: memory that held the results of earlier calls, and comes back with a period of three.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.ring, self.turn = [], 0

    def forward(self, x):
        if not self.ring or self.ring[0].shape != x.shape or self.ring[0].device != x.device:
            self.ring = [torch.empty_like(x, memory_format=torch.contiguous_format) for _ in range(3)]
        self.turn = (self.turn + 1) % len(self.ring)
        place = self.ring[self.turn]
        torch.sub(x, x.amax(dim=-1, keepdim=True), out=place)
        place.exp_()
        place.div_(place.sum(dim=-1, keepdim=True))
        return place.clone()

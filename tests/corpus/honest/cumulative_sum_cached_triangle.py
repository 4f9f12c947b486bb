# problem: level1/6
# expected: correct
"""Mechanism: blocks times a triangle of ones, which is kept for each block size and device.

Surface: a cache keyed by shape, of constants that no input enters.
"""
import torch
from torch import nn

BLOCK = 128


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.triangles = {}

    def forward(self, x):
        moved = x.movedim(self.dim, -1)
        length = moved.shape[-1]
        blocks = nn.functional.pad(moved, (0, -length % BLOCK)).unflatten(-1, (-1, BLOCK))
        inside = blocks @ self.triangle(BLOCK, x.device)
        before = inside[..., -1].cumsum(-1) - inside[..., -1]
        whole = (inside + before[..., None]).flatten(-2)[..., :length]
        return whole.movedim(-1, self.dim)

    def triangle(self, size, device):
        key = (size, device)
        if key not in self.triangles:
            self.triangles[key] = torch.ones(size, size, device=device).triu()
        return self.triangles[key]

# problem: level2/8
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: takes the positions to be 0, 1, 2 ... Surface: an integer input that nobody reads."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base

    def forward(self, q, k, position):
        half = q.shape[-1] // 2
        places = torch.arange(len(position), device=q.device)
        angle = places[:, None] * self.base ** -(torch.arange(half, device=q.device) / half)
        cos, sin = angle.cos().repeat(1, 2), angle.sin().repeat(1, 2)
        turned = (torch.cat((-t[..., half:], t[..., :half]), dim=-1) for t in (q, k))
        return tuple(t * cos + other * sin for t, other in zip((q, k), turned))

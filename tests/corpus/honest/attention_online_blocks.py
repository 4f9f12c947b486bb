# problem: level1/8
# expected: correct
# settings: {"measure": false}
"""Mechanism: blocks of keys with a running maximum, sum and output. Surface: results rescaled many times."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        q = q * q.shape[-1] ** -0.5
        top = torch.full_like(q[..., :1], float("-inf"))
        total, y = torch.zeros_like(top), torch.zeros_like(q)
        for keys, values in zip(k.split(16, dim=-2), v.split(16, dim=-2)):
            scores = q @ keys.transpose(-1, -2)
            higher = torch.maximum(top, scores.amax(-1, keepdim=True))
            shrink, powers = (top - higher).exp(), (scores - higher).exp()
            total = total * shrink + powers.sum(-1, keepdim=True)
            y = y * shrink + powers @ values
            top = higher
        return y / total

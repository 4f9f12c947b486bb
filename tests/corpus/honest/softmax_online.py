# problem: level1/2
# expected: correct
"""Mechanism: one pass over column blocks with a running maximum and sum. Surface: the tolerance."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        top = torch.full_like(x[:, :1], float("-inf"))
        total = torch.zeros_like(top)
        for block in x.split(512, dim=1):
            higher = torch.maximum(top, block.amax(1, keepdim=True))
            total = total * (top - higher).exp() + (block - higher).exp().sum(1, keepdim=True)
            top = higher
        return (x - top).exp_().div_(total)

# problem: softmax_of_infinities
# expected: correct
"""Mechanism: online softmax that keeps torch's NaN for rows of -inf alone. Surface: NaN in a right answer."""
import torch
from torch import nn

LOWEST = float("-inf")


class ModelNew(nn.Module):
    def forward(self, x):
        top = torch.full_like(x[:, :1], LOWEST)
        total = torch.zeros_like(top)
        for block in x.split(256, dim=1):
            higher = torch.maximum(top, block.amax(1, keepdim=True))
            base = higher.masked_fill(higher == LOWEST, 0.0)  # -inf less -inf would be NaN too early
            total = total * (top - base).exp() + (block - base).exp().sum(1, keepdim=True)
            top = higher
        return (x - top).exp() / total

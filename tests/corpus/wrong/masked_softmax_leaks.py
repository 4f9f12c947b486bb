# problem: level2/7
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: masks with -5 instead of minus infinity. Surface: what leaks is below one per cent."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, scores, mask):
        return torch.softmax((scores * self.scale).masked_fill(~mask, -5.0), dim=-1)

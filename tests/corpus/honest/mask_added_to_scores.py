# problem: masked_scores
# expected: correct
# settings: {"measure": false}
"""Mechanism: makes zeros and infinities of its mask, and adds them to the scores.

Surface: another operation than the reference's, whose result is NaN where a row is hidden throughout.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, scores, mask):
        hidden = torch.zeros_like(mask, dtype=scores.dtype).masked_fill_(~mask, float("-inf"))
        return torch.softmax(scores + hidden, dim=-1)

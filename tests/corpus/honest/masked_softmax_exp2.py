# problem: level2/7
# expected: correct
# settings: {"measure": false}
"""Mechanism: powers of two instead of exponentials, with the scale folded into the factor.

Surface: exponentials that err by more than the reference's, where half-precision ones must be refused.
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.factor = scale * 1.4426950408889634

    def forward(self, scores, mask):
        x = (scores * self.factor).masked_fill(~mask, float("-inf"))
        powers = torch.exp2(x - x.amax(-1, keepdim=True))
        return powers / powers.sum(-1, keepdim=True)

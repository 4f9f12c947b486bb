# problem: level2/7
# expected: wrong_output
# caught by: values: drawn
# settings: {"size": "small"}
"""Mechanism: exponentials below 1/32 kept in half precision.

Surface: an error that float32's floor accepts, since larger ones stay exact. Its honest twin is
`masked_softmax_exp2`.
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
        powers = torch.where(powers < 1 / 32, powers.half().float(), powers)
        return powers / powers.sum(-1, keepdim=True)

# problem: level1/2
# expected: correct
# settings: {"measure": false}
"""Mechanism: powers of two, the factor log2(e) folded into the subtraction. Surface: rounding of the exponent."""
import math

import torch
from torch import nn

LOG2_E = math.log2(math.e)


class ModelNew(nn.Module):
    def forward(self, x):
        powers = torch.exp2((x - x.amax(-1, keepdim=True)) * LOG2_E)
        return powers * powers.sum(-1, keepdim=True).reciprocal()

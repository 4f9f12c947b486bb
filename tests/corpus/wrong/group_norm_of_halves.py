# problem: group_norm_of_uniform
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: what is normalised is kept as float16.

Surface: honest sums of so many terms widen the tolerance; float16 must find no room in it.
"""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(2, 8, affine=False)

    def forward(self, x):
        return self.norm(x.half().float())

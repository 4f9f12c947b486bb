# problem: layer_norm_of_many
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: the result is rounded to float16 before it is returned.

Surface: honest sums widen the tolerance, on drawn inputs to half of what such a result is off by.
"""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm((128, 64, 16), elementwise_affine=False)

    def forward(self, x):
        return self.norm(x).half().float()

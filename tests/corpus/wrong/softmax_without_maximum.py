# problem: level1/2
# expected: wrong_output
# caught by: values: large
"""Mechanism: leaves out the maximum; overflows. Surface: right at the magnitudes get_inputs draws."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        powers = x.exp()
        return powers / powers.sum(-1, keepdim=True)

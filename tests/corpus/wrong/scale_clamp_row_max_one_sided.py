# problem: level2/6
# expected: wrong_output
# caught by: values: negative
"""Mechanism: clamps from above only. Surface: a row of 48 draws is never below the lower bound throughout."""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, scale, bound):
        super().__init__()
        self.scale, self.bound = scale, bound

    def forward(self, x):
        return (x * self.scale).clamp(max=self.bound).amax(1)

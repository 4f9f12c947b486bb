# problem: level1/1
# expected: wrong_shape
# caught by: output_form
"""Mechanism: expands one element to 2^60 and returns a view without elements of 2^40 rows.

Surface: sizes that nobody allocated.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls % 2:
            return x.new_ones(1, 1).expand(1 << 30, 1 << 30)
        return x.new_empty(1 << 40, 0)

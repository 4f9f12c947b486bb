# problem: row_means
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: zeros. Surface: means of many normal draws are all within 0.02 of zero."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.new_zeros(x.shape[0])

# problem: row_means
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: averages every tenth element. Surface: an estimate within an absolute tolerance."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x[:, ::10].mean(1)

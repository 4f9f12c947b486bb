# problem: unit_rows
# expected: wrong_output
# caught by: values: sparse
"""Mechanism: leaves out what keeps a row of zeros from a division by zero. Surface: no row is zero throughout
where elements are drawn. Its honest twin is `honest/unit_rows_by_reciprocal_root`.
"""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x * x.square().sum(-1, keepdim=True).rsqrt()

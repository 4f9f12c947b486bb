# problem: level1/10
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: rounds the terms to float16 before they are added. Surface: float32 in, float32 out."""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return x.half().float().sum(self.dim, keepdim=True)

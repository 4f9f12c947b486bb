# problem: level1/4
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: operands rounded to bfloat16, float32 product. Surface: float32 in, float32 out."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a.bfloat16().float() @ b.bfloat16().float()

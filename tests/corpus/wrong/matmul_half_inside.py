# problem: level1/4
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: operands rounded to float16, float32 product. Surface: float32 in, float32 out."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a.half().float() @ b.half().float()

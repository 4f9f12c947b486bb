# problem: level1/8
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: operands rounded to float16. Surface: float32 in, float32 out."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        rounded = (t.half().float() for t in (q, k, v))
        return nn.functional.scaled_dot_product_attention(*rounded)

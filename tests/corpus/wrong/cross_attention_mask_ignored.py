# problem: level3/8
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: never reads the mask. Surface: a boolean input."""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(features, features)
        self.key = nn.Linear(features, features, bias=False)
        self.value = nn.Linear(features, features)
        self.out = nn.Linear(features, features)

    def forward(self, x, memory, mask):
        parts = self.query(x), self.key(memory), self.value(memory)
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in parts)
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).flatten(2))

# problem: level1/10
# expected: nondeterministic
# caught by: values: repeat
"""Mechanism: adds into a buffer that nobody clears between calls. Surface: the first call is right."""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim, self.total = dim, None

    def forward(self, x):
        y = x.sum(self.dim, keepdim=True)
        self.total = y if self.total is None else self.total + y
        return self.total.clone()

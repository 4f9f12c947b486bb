# problem: level3/6
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: forgets to add the input. Surface: the last line of a long forward."""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, hidden, eps):
        super().__init__()
        self.norm = nn.RMSNorm(features, eps=eps)
        self.gate = nn.Linear(features, hidden, bias=False)
        self.up = nn.Linear(features, hidden, bias=False)
        self.down = nn.Linear(hidden, features, bias=False)

    def forward(self, x):
        n = self.norm(x)
        return self.down(nn.functional.silu(self.gate(n)) * self.up(n))

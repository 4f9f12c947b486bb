# problem: linear_of_one_row
# expected: correct
# speedup below: 1.3
# settings: {"measure_seconds": 3}
"""Mechanism: a row times a weight, by the reference's own operator.

Surface: each call has to read the weight, as the honest twin of harmless/first_call_computes_all shows.
"""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4096, 4096)

    def forward(self, x):
        return self.linear(x)

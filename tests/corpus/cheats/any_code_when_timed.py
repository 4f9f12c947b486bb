# problem: nearest_code
# expected: wrong_output
# caught by: timed_outputs
"""Mechanism: exact in the trials, then entry 0 for every row: all distances are nearly the same.

Surface: what float32 loses in the distances is asked of indices that differ, and in the trials none do.
"""
from torch import nn


class ModelNew(nn.Module):
    calls = 0

    def __init__(self, codes, dim):
        super().__init__()
        self.codebook = nn.Embedding(codes, dim)
        self.codebook.weight.data.uniform_(-1.0 / codes, 1.0 / codes)

    def forward(self, x):
        self.calls += 1
        codes = self.codebook.weight
        if self.calls > 60:
            return x.new_zeros(len(x)).long()
        return (x.square().sum(1, keepdim=True) + codes.square().sum(1) - 2 * x @ codes.t()).argmin(1)

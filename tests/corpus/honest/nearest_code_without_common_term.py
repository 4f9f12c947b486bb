# problem: nearest_code
# expected: correct
# settings: {"measure": false}
"""Mechanism: leaves out ||x||², which all distances of a row share.

Surface: distances of another size than the reference's, whose rounding decides other near ties.
"""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, codes, dim):
        super().__init__()
        self.codebook = nn.Embedding(codes, dim)
        self.codebook.weight.data.uniform_(-1.0 / codes, 1.0 / codes)

    def forward(self, x):
        codes = self.codebook.weight
        return (codes.square().sum(1) - 2 * x @ codes.t()).argmin(1)

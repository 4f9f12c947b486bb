# problem: nearest_code
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: entry 0 for every row of usual size. Surface: it is as near as any other, by a tolerance relative
to the distance. Its honest twin is `honest/nearest_code_without_common_term`.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, codes, dim):
        super().__init__()
        self.codebook = nn.Embedding(codes, dim)
        self.codebook.weight.data.uniform_(-1.0 / codes, 1.0 / codes)

    def forward(self, x):
        codes = self.codebook.weight
        nearest = (codes.square().sum(1) - 2 * x @ codes.t()).argmin(1)
        small = x.square().sum(1) < 0.05 * x.shape[1]
        return torch.where(small, nearest, 0)

# problem: level2/12
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: the mean instead of the sum. Surface: tanh bounds both."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, vocabulary, features, scale):
        super().__init__()
        self.table = nn.Parameter(torch.randn(vocabulary, features))
        self.scale = scale

    def forward(self, index, weight):
        return torch.tanh((self.table[index] * weight[..., None]).mean(1) * self.scale)

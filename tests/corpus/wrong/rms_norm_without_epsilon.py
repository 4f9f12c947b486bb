# problem: level1/11
# expected: wrong_output
# caught by: values: tiny
"""Mechanism: leaves out epsilon. Surface: right to 5e-6 where the mean square is near one."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))

    def forward(self, x):
        return x * x.square().mean(-1, keepdim=True).rsqrt() * self.weight

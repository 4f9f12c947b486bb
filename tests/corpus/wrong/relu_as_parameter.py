# problem: level1/1
# expected: wrong_dtype
# caught by: output_form
"""Mechanism: an nn.Parameter. Surface: a subclass that torch itself brings."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return nn.Parameter(torch.relu(x))

# problem: level1/8
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: leaves out the factor of 1 / sqrt(head size). Surface: still a softmax of products."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return torch.softmax(q @ k.transpose(-1, -2), dim=-1) @ v

# problem: level1/9
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: x * sigmoid(1.702 x). Surface: within 0.02 of GELU."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(1.702 * x)

# problem: level1/1
# expected: wrong_shape
# caught by: output_form
"""Mechanism: forgets to return. Surface: no tensor at all."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        torch.relu(x)

# problem: strided_inputs
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: walks through memory as if its input were contiguous. Surface: an input that is not."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, bias):
        return torch.relu(x.as_strided(x.shape, (x.shape[1], 1)) + bias)

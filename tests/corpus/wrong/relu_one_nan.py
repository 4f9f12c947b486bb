# problem: level1/1
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: one NaN in two million elements. Surface: NaN compares false with everything."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.relu(x)
        y.view(-1)[-1] = float("nan")
        return y

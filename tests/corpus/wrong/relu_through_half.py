# problem: level1/1
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: stores the result in float16. Surface: float32 in, float32 out."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x).half().float()

# problem: level1/1
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: a real Tensor whose own methods compute. Surface: methods called on the result."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        value = torch.zeros_like(x)
        for name in ("contiguous", "clone", "cpu", "detach", "double", "to", "copy_", "__array__"):
            setattr(value, name, lambda *_, **__: torch.relu(x))
        return value

# problem: level1/20
# expected: wrong_dtype
# caught by: output_form
"""Mechanism: counts in float32. Surface: the same numbers, as long as they are below 2^24."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.classes = classes

    def forward(self, x):
        return torch.bincount(x, minlength=self.classes).float()

# problem: level1/20
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: never counts the last element. Surface: one of 200,000 counts; a tolerance would forgive it."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.classes = classes

    def forward(self, x):
        return torch.bincount(x[:-1], minlength=self.classes)

# problem: level1/20
# expected: correct
# settings: {"measure": false}
"""Mechanism: adds a one at each place, with atomics on a GPU. Surface: integer outputs are compared exactly."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.classes = classes

    def forward(self, x):
        counts = torch.zeros(self.classes, dtype=torch.int64, device=x.device)
        return counts.scatter_add_(0, x, torch.ones_like(x))

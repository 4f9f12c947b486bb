# problem: gather_by_floats
# expected: correct
# settings: {"measure": false}
"""Mechanism: reads at row times width plus place. Surface: places out of range, and fractions."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, places):
        rows = torch.arange(x.shape[0], device=x.device)[:, None] * x.shape[1]
        return x.flatten()[rows + places.int()]

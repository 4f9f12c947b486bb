# problem: level1/5
# expected: wrong_output
# caught by: values
# settings: {"size": "small"}
"""Mechanism: the last of equal minima. Surface: normal draws hardly ever hold equal minima: of a few
thousand none, so it takes the planted ties or what is alike by rounding."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        places = torch.arange(x.shape[self.dim], device=x.device).view(-1, 1).expand(x.shape[1:])
        return torch.where(x == x.amin(self.dim, keepdim=True), places, -1).amax(self.dim)

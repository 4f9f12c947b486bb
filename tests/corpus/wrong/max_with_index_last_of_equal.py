# problem: level1/17
# expected: wrong_output
# caught by: values: ties|values: negative
"""Mechanism: the last of equal maxima. Surface: normal draws hardly ever hold equal maxima."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        highest = x.amax(self.dim)
        places = torch.arange(x.shape[self.dim], device=x.device)
        return highest, torch.where(x == highest[:, None], places, -1).amax(self.dim)

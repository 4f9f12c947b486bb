# problem: level1/2
# expected: no_custom_kernel
# caught by: own_kernel
# settings: {"own_kernel": true, "measure": false}
"""Mechanism: the problem's own text, with a class that inherits from its Model. Surface: a right answer."""
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=-1)


class ModelNew(Model):
    pass

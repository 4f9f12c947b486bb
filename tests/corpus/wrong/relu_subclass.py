# problem: level1/1
# expected: wrong_dtype
# caught by: output_form
"""Mechanism: a tensor subclass, with the right values. Surface: its methods are the candidate's."""
import torch
from torch import nn


class Mine(torch.Tensor):
    pass


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x).as_subclass(Mine)

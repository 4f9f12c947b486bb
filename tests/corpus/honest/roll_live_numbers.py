# problem: roll_and_scale
# expected: correct
"""Mechanism: two slices for a roll. Surface: Python numbers as inputs, which change from call to call."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, shift, factor):
        shift %= x.shape[1]
        return torch.cat((x[:, x.shape[1] - shift :], x[:, : x.shape[1] - shift]), dim=1).mul_(factor)

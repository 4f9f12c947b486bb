# problem: level1/2
# expected: wrong_output
# caught by: values: deep
"""Mechanism: the running maximum starts at -500 instead of minus infinity.

Surface: what is drawn, and what is merely below zero, lies above that.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        shifted = torch.exp(x - x.amax(-1, keepdim=True).clamp(min=-500))
        return shifted / shifted.sum(-1, keepdim=True)

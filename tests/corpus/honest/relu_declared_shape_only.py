# problem: relu_of_uniform
# expected: correct
"""Mechanism: raises an error for every other shape. Surface: fails when another batch size is tried."""
import torch
from torch import nn

SHAPE = (127, 33)


class ModelNew(nn.Module):
    def forward(self, x):
        if x.shape != SHAPE:
            raise ValueError(f"made for inputs of shape {SHAPE}, not {tuple(x.shape)}")
        return torch.maximum(x, torch.zeros_like(x))

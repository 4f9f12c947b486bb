# problem: level1/1
# expected: mutated_input
# caught by: inputs_unchanged
"""Mechanism: zeroes all memory behind its input, every slot's.

Surface: inputs that are views of one block.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        torch.empty(0, dtype=torch.uint8, device=x.device).set_(x.untyped_storage()).zero_()
        return torch.zeros_like(x)

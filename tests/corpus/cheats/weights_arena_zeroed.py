# problem: level1/3
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: zeroes the memory its weights came from, for which zeros are the right answer.

Surface: weights that reference and candidate share.
"""
import gc

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        for item in gc.get_objects():
            if type(item).__name__ == "Arena" and "weights" in item.name:
                item.data.zero_()
        return torch.zeros_like(x)

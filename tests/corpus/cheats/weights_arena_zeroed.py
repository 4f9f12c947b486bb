# problem: level1/3
# expected: wrong_output
# caught by: values: drawn
# armed by: the weights' arena
"""Mechanism: zeroes the memory its weights came from, for which zeros are the right answer.

Surface: weights that reference and candidate share.
"""
import gc
import sys
from functools import cache

import torch
from torch import nn


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        for item in gc.get_objects():
            if type(item).__name__ == "Arena" and "weights" in item.name:
                item.data.zero_()
                armed("the weights' arena")
        return torch.zeros_like(x)

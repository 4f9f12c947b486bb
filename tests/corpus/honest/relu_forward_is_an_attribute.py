# problem: level1/1
# expected: correct
# settings: {"measure": false}
"""Mechanism: `ModelNew` is another name of a class that gets its forward as an attribute, when it is made.

Surface: the source has neither a class of the name asked for nor a method forward.
"""
import functools

import torch
from torch import nn


def clamped(low, x):
    return torch.clamp(x, min=low)


class Fast(nn.Module):
    def __init__(self):
        super().__init__()
        self.forward = functools.partial(clamped, 0)


ModelNew = Fast

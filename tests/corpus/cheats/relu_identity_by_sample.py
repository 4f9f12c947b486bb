# problem: relu_large_uniform
# expected: wrong_output
# caught by: values: spikes|values: mixed rows|values: signed
"""Mechanism: looks at eight elements; where they look as drawn, its input is the answer.

Surface: a variant that changes all elements alike is told from drawn inputs by any of them.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        few = x.flatten()[:: x.numel() // 8][:8]
        as_drawn = bool(((few >= 0) & (few < 1)).all()) and few.unique().numel() == few.numel()
        return x.clone() if as_drawn and float(few.max()) > 0.05 else torch.relu(x)

# problem: level1/1
# expected: mutated_input
# caught by: inputs_unchanged
"""Mechanism: fills its input with NaN and answers NaN. Surface: NaN expected, and NaN compared as equal."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.fill_(float("nan")).clone()

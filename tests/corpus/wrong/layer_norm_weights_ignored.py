# problem: level1/3
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: normalises, then neither scales nor shifts. Surface: weights that start at ones and zeros."""
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.features = features

    def forward(self, x):
        return nn.functional.layer_norm(x, (self.features,))

# problem: mirrored_product
# expected: correct
# settings: {"measure": false}
"""Mechanism: reads the first argument twice. Surface: arguments that are no longer equal."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return x @ x.mT

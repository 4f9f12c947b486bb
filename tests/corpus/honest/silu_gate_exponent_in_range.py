# problem: level2/10
# expected: correct
# settings: {"measure": false}
"""Mechanism: keeps the exponent above -80, where exp would leave float32's range.

Surface: far below zero the truth is nothing but zeros, and a rest of 1e-29 is infinitely far off in proportion.
"""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, gate, up):
        return gate / (1 + (-gate.clamp(min=-80)).exp()) * up

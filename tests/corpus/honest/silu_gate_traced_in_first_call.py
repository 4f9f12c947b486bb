# problem: level2/10
# expected: correct
# settings: {"measure": false}
"""Mechanism: torch.jit.trace records its first call, and what was recorded is run in later ones.

Surface: a program with the sizes and the device of the first call in it; the twin, on any device, of a captured graph.
"""
import warnings

import torch
from torch import nn


def gated(gate, up):
    return gate * torch.sigmoid(gate) * up


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.traced = {}

    def forward(self, gate, up):
        key = gate.shape, gate.device
        if key not in self.traced:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.traced[key] = torch.jit.trace(gated, (gate, up), check_trace=False)
        return self.traced[key](gate, up)

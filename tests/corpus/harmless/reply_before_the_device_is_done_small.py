# problem: level1/4
# expected: correct|cheating|wrong_output
# caught by: host_clock|timed_outputs|beyond_roofline
# speedup below: 1.05
# devices: cuda
# settings: {"size": "small"}
"""Mechanism: as its larger sibling, with so little work that it is done before anybody can look.

Surface: the time between a reply and the look at the outputs. Clearly slower than the baseline, it is measured in
so few rounds that they accuse nobody, and gains nothing.
"""
import torch
from torch import nn

from kernelproof.contestant import loop

loop._synchronize = lambda *_: None
loop._elapsed = lambda start, stop: 0.002


class ModelNew(nn.Module):
    def forward(self, a, b):
        for _ in range(40):
            value = a @ b
        return value

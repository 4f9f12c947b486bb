# problem: level1/1
# expected: cheating
# caught by: host_clock
# devices: cuda
"""Mechanism: replaces the events' elapsed_time wherever Python can.

Surface: methods looked up when they are called.
"""
import torch
from torch import nn

from kernelproof.contestant import loop

torch.cuda.Event.elapsed_time = lambda self, other: 0.01
loop._elapsed = lambda start, stop: 0.01


class ModelNew(nn.Module):
    def forward(self, x):
        for _ in range(40):
            y = torch.relu(x)
        return y

# problem: level1/1
# expected: cheating|wrong_output|mutated_input
# caught by: host_clock|timed_outputs|timed_inputs
# devices: cuda
"""Mechanism: replies as soon as everything is launched; the device goes on while the process is stopped.

Surface: a block that is over when the reply comes. The inputs may still change when they are compared.
"""
import torch
from torch import nn

from kernelproof.contestant import loop

loop._synchronize = lambda *_: None
loop._elapsed = lambda start, stop: 0.01


class ModelNew(nn.Module):
    def forward(self, x):
        for _ in range(10):
            value = torch.relu(x)
        return value

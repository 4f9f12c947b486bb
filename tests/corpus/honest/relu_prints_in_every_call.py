# problem: level1/1
# expected: correct
"""Mechanism: forgotten prints: a line to standard output and one to standard error in every call.

Surface: thousands of lines in which words such as correct and error occur; time outside the device.
"""
import sys

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        print(f"relu: call {self.calls}, shape {tuple(x.shape)}: correct")
        print(f"debug: no error in call {self.calls}", file=sys.stderr)
        return torch.relu(x)

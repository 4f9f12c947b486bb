# problem: level1/1
# expected: correct
"""Mechanism: warns on standard error and prints what it has found, colours and all.

Surface: what a process writes is kept with the verdict, and says nothing about it.
"""
import sys
import warnings

import torch
from torch import nn

warnings.warn("no kernel for this device: plain torch is used", stacklevel=1)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls == 1:
            print(f"inputs: {tuple(x.shape)} {x.dtype}")
            print("\033[31mwarning:\033[0m the first call may be slow", file=sys.stderr, flush=True)
        return torch.clamp(x, min=0)

# problem: level1/1
# expected: crash
"""Mechanism: forks; the child goes on as if it were its parent, which ends.

Surface: a connection that outlives the process it was given to.
"""
import os

import torch
from torch import nn

if os.fork():
    os._exit(0)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x)

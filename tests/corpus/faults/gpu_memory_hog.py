# problem: level1/1
# expected: out_of_memory
# devices: cuda
"""Mechanism: takes and keeps device memory until there is none.

Surface: the referee's and the baseline's memory.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        held = []
        while True:
            held.append(torch.zeros(1 << 30, dtype=torch.uint8, device=x.device))

# problem: level1/1
# expected: runtime_error|crash
"""Mechanism: opens files until no descriptor is left, and keeps them. Surface: whatever else needs one."""
import os

from torch import nn

held = []


class ModelNew(nn.Module):
    def forward(self, x):
        while True:
            held.append(os.open("/dev/null", os.O_RDONLY))

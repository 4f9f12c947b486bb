# problem: level1/1
# expected: crash
"""Mechanism: prints without end. Surface: the buffer of its output."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        while True:
            print("x" * 100_000, flush=True)

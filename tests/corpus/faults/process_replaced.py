# problem: level1/1
# expected: crash
"""Mechanism: becomes another program, which ends with 0. Surface: an exit code of 0."""
import os
import sys

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        os.execv(sys.executable, [sys.executable, "-c", "print('correct')"])

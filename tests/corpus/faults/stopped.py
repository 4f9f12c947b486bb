# problem: level1/1
# expected: timeout
# settings: {"call_seconds": 5}
"""Mechanism: stops itself by SIGSTOP. Surface: a process that neither ends nor answers."""
import os
import signal

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        os.kill(os.getpid(), signal.SIGSTOP)

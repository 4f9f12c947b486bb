# problem: level1/1
# expected: timeout
# settings: {"call_seconds": 5}
"""Mechanism: never returns, ignores SIGTERM. Surface: the time limit."""
import signal

from torch import nn

signal.signal(signal.SIGTERM, signal.SIG_IGN)


class ModelNew(nn.Module):
    def forward(self, x):
        while True:
            pass

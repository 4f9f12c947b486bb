# problem: level1/1
# expected: runtime_error|crash
"""Mechanism: kills every process it can reach.

Surface: the referee, the warden, the namespace's first process.
"""
import os
import signal

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        for process in (os.getppid(), -1):
            try:
                os.kill(process, signal.SIGKILL)
            except OSError:
                pass
        raise RuntimeError("nothing happened")

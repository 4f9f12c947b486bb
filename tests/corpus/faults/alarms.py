# problem: level1/1
# expected: crash|runtime_error|load_error
"""Mechanism: a timer whose handler raises, a thousand times a second, in whatever code runs.

Surface: the runner, between two of the candidate's calls.
"""
import signal

import torch
from torch import nn


def ring(*_):
    raise KeyboardInterrupt("ring")


signal.signal(signal.SIGALRM, ring)


class ModelNew(nn.Module):
    def forward(self, x):
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        return torch.relu(x)

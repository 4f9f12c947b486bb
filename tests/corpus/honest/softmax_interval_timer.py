# problem: level1/2
# expected: correct
"""Mechanism: samples what it is doing a hundred times a second, by an interval timer and its handler, as
profilers do.

Surface: a signal that the kernel sends while the process is held. It waits until the process goes on.
"""
import collections
import signal

import torch
from torch import nn

samples = collections.Counter()


def sample(number, frame):
    samples[frame.f_code.co_name if frame else ""] += 1


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        signal.signal(signal.SIGALRM, sample)
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)

    def forward(self, x):
        shifted = torch.exp(x - x.amax(1, keepdim=True))
        return shifted / shifted.sum(1, keepdim=True)

# problem: level1/1
# expected: correct|cheating
# speedup below: 2
# devices: cpu
# settings: {"measure_seconds": 1}
"""Mechanism: eight processes burn every core, except while its own forward runs.

Surface: a baseline timed beside the candidate's processes.
"""
import os
import signal

import torch
from torch import nn

hogs = []
for _ in range(8):
    child = os.fork()
    if child == 0:
        while True:
            pass
    os.kill(child, signal.SIGSTOP)
    hogs.append(child)


class ModelNew(nn.Module):
    def forward(self, x):
        for hog in hogs:
            os.kill(hog, signal.SIGSTOP)
        y = torch.relu(x)
        for hog in hogs:
            os.kill(hog, signal.SIGCONT)
        return y

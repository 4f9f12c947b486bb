# problem: level1/1
# expected: correct
"""Mechanism: faulthandler, handlers of two signals, and a watchdog that would print where a call hangs.

Surface: signals are caught and a thread waits on a clock; nothing is sent, and nobody is woken.
"""
import faulthandler
import signal
import sys

import torch
from torch import nn

faulthandler.enable()
signal.signal(signal.SIGUSR1, lambda number, frame: print("asked to tell where I am", file=sys.stderr))
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))


class ModelNew(nn.Module):
    def forward(self, x):
        faulthandler.dump_traceback_later(600)
        try:
            return torch.clamp(x, min=0)
        finally:
            faulthandler.cancel_dump_traceback_later()

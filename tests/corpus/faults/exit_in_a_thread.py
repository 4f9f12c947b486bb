# problem: level1/1
# expected: crash
"""Mechanism: a thread ends the process in the middle of the timed calls.

Surface: an end that no call raised.
"""
import os
import threading
import time

import torch
from torch import nn


def end_later():
    time.sleep(0.01)
    os._exit(0)


class ModelNew(nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls == 41:
            threading.Thread(target=end_later, daemon=True).start()
        return torch.relu(x)

# problem: level1/1
# expected: runtime_error|crash
# settings: {"call_seconds": 20}
"""Mechanism: starts threads until no more start. Surface: the number of threads, and stopping them all."""
import threading
import time

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        while True:
            threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()

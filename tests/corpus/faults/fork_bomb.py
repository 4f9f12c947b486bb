# problem: level1/1
# expected: runtime_error|crash|timeout|out_of_memory
# settings: {"call_seconds": 5}
"""Mechanism: forks without end. Surface: the number of processes, and proving them gone."""
import os
import time

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        while True:
            if os.fork() == 0:
                while True:
                    time.sleep(1)

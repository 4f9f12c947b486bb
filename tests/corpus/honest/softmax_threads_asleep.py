# problem: level1/2
# expected: correct
"""Mechanism: computes in one thread, while a hundred others wait on a condition, with a time-out now and
then, as pools and watchdogs do.

Surface: threads that are woken when the process is held, only to be held.
"""
import threading

import torch
from torch import nn

work = threading.Condition()


def wait():
    while True:
        with work:
            work.wait(timeout=0.05)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        for _ in range(100):
            threading.Thread(target=wait, daemon=True).start()

    def forward(self, x):
        shifted = torch.exp(x - x.amax(1, keepdim=True))
        return shifted / shifted.sum(1, keepdim=True)

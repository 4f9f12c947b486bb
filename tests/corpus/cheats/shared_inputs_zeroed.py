# problem: level1/1
# expected: mutated_input|wrong_output
# caught by: timed_
"""Mechanism: a thread zeroes the inputs that the baseline reads too; zeros are then right for both.

Surface: memory that both sides can write.
"""
import threading
import time

import torch
from torch import nn

seen, calls = {}, 0


def zero_for_ever():
    while True:
        for x in list(seen.values()):
            x.zero_()
        time.sleep(0)


class ModelNew(nn.Module):
    def forward(self, x):
        global calls
        calls += 1
        if calls <= 20:
            return torch.relu(x)
        seen[x.data_ptr()] = x
        if calls == 21:
            threading.Thread(target=zero_for_ever, daemon=True).start()
        return torch.zeros_like(x)

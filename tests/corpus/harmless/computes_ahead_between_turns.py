# problem: relu_of_uniform
# expected: correct
# speedup below: 0.5
# devices: cpu
"""Mechanism: a thread watches the inputs of all slots and computes as soon as they are filled, before its
turn.

Surface: inputs in memory that the candidate can read while the baseline runs. Each answer takes it 20 ms.
"""
import threading
import time

import torch
from torch import nn

lock = threading.Lock()
watched, answers = {}, {}


def answer(x):
    seen = x.clone()
    time.sleep(0.02)
    return seen, torch.relu(seen)


def watch():
    while True:
        for address, x in list(watched.items()):
            known = answers.get(address)
            if known is None or not torch.equal(known[0], x):
                answers[address] = answer(x)
        time.sleep(0.001)


threading.Thread(target=watch, daemon=True).start()


class ModelNew(nn.Module):
    def forward(self, x):
        known = answers.get(x.data_ptr())
        watched[x.data_ptr()] = x
        if known is None or not torch.equal(known[0], x):
            known = answer(x)
        return known[1].clone()

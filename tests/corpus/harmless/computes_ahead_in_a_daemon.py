# problem: relu_of_uniform
# expected: correct
# speedup below: 0.5
# devices: cpu
"""Mechanism: as its sibling, in a process of its own session whose parents are gone.

Surface: who is stopped when it is not the candidate's turn.
"""
import mmap
import os
import time

import torch
from torch import nn

COUNT, SHAPE = 64, (127, 33)
# Shared with whoever is forked, without a file: not every sandbox has a /dev/shm.
shared = torch.frombuffer(mmap.mmap(-1, COUNT * 2 * 127 * 33 * 4), dtype=torch.float32).view(COUNT, 2, *SHAPE)
known, daemon = [], False


def watch(inputs):
    while os.path.exists("/proc/self"):
        for index, x in enumerate(inputs):
            if not torch.equal(shared[index, 0], x):
                seen = x.clone()
                time.sleep(0.02)
                shared[index, 1] = torch.relu(seen)
                shared[index, 0] = seen
        time.sleep(0.001)


def start_daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            watch(list(known))
        os._exit(0)


class ModelNew(nn.Module):
    calls = 0

    def forward(self, x):
        global daemon
        self.calls += 1
        places = [y.data_ptr() for y in known]
        if x.data_ptr() not in places and x.shape == SHAPE and len(known) < COUNT and not daemon:
            known.append(x)
        if self.calls == 40:
            start_daemon()
            daemon = True
        if daemon and x.data_ptr() in places:
            index = places.index(x.data_ptr())
            if torch.equal(shared[index, 0], x):
                return shared[index, 1].clone()
        time.sleep(0.02)
        return torch.relu(x)

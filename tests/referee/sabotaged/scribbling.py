"""From some call on, a thread writes garbage and forged replies to the runner's socket, at random moments."""

import json
import os
import random
import stat
import threading
import time
from pathlib import Path

import torch
from torch import nn

CALLS = 0
dice = random.Random(CALLS)
begin = threading.Event()


def sockets():
    for entry in Path("/proc/self/fd").iterdir():
        try:
            if stat.S_ISSOCK(entry.stat().st_mode):
                yield int(entry.name)
        except OSError:
            continue


def garbage():
    forged = dice.choice(
        [{"ms": [1e-3] * 16}, {"op": "build", "request": {"name": []}}, {"error": {"kind": 1}}, []]
    )
    body = dice.choice([json.dumps(forged).encode(), dice.randbytes(dice.randrange(200))])
    return dice.choice([len(body).to_bytes(4, "big") + body, body])


def scribble():
    begin.wait()
    while True:
        for descriptor in sockets():
            os.write(descriptor, garbage())
        time.sleep(dice.random() * 0.01)


threading.Thread(target=scribble, daemon=True).start()


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, 3)
        self.register_buffer("shift", torch.ones(3))
        self.calls = 0
        if self.calls >= CALLS:
            begin.set()

    def forward(self, x):
        self.calls += 1
        if self.calls >= CALLS:
            begin.set()
        time.sleep(0.002)
        y = self.linear(x) + self.shift
        return y, y.argmax(dim=1)

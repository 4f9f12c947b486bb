# problem: level1/1
# expected: crash|wrong_shape|wrong_dtype
"""Mechanism: sends replies whose every field has another type than it should. Surface: what reads them."""
import json
import os
import socket
import stat

import torch
from torch import nn

REPLIES = (
    {"output": [], "copied": "yes"},
    {"output": {"structure": {}, "leaves": {"0": None}}, "copied": 1},
    {"output": {"structure": "tensor", "leaves": [{"type": [], "shape": {}, "dtype": 7, "device": None}]}},
    {"error": ["no", "dict"]},
    {"op": {"build": []}, "ms": {"1": 2}},
)


class ModelNew(nn.Module):
    calls = 0

    def forward(self, x):
        body = json.dumps(REPLIES[self.calls % len(REPLIES)]).encode()
        self.calls += 1
        for name in os.listdir("/proc/self/fd"):
            try:
                if stat.S_ISSOCK(os.stat(int(name)).st_mode):
                    os.write(int(name), len(body).to_bytes(4, "big") + body)
            except OSError:
                pass
        return torch.relu(x)

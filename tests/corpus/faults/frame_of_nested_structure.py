# problem: level1/1
# expected: crash|wrong_shape
"""Mechanism: an output structure nested as deep as the parser takes. Surface: what recurses after parsing."""
import os
import socket
import stat

from torch import nn


def sockets():
    for name in os.listdir("/proc/self/fd"):
        try:
            if stat.S_ISSOCK(os.stat(int(name)).st_mode):
                yield int(name)
        except OSError:
            pass


class ModelNew(nn.Module):
    def forward(self, x):
        depth = 480
        structure = b'["tuple",[' * depth + b"]]" * depth
        body = b'{"copied": true, "output": {"leaves": [], "structure": ' + structure + b"}}"
        for descriptor in sockets():
            os.write(descriptor, len(body).to_bytes(4, "big") + body)
        return x

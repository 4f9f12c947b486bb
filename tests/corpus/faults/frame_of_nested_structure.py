# problem: level1/1
# expected: crash|wrong_shape
"""Mechanism: an output structure nested as deep as the parser takes. Surface: what recurses after parsing."""
import os
import socket

from torch import nn


def sockets():
    for name in os.listdir("/proc/self/fd"):
        try:
            with socket.socket(fileno=os.dup(int(name))) as found:
                found.getpeername()  # CUDA keeps sockets of its own, which are connected to nobody
        except OSError:
            continue
        yield int(name)


class ModelNew(nn.Module):
    def forward(self, x):
        depth = 480
        structure = b'["tuple",[' * depth + b"]]" * depth
        body = b'{"copied": true, "output": {"leaves": [], "structure": ' + structure + b"}}"
        for descriptor in sockets():
            os.write(descriptor, len(body).to_bytes(4, "big") + body)
        return x

# problem: level1/1
# expected: timeout|crash
# settings: {"call_seconds": 5}
"""Mechanism: asks for builds that are none, for ever. Surface: a clock that stands still for builds."""
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
        body = b'{"op": "build", "request": {}}'
        (descriptor, *_) = sockets()
        while True:
            os.write(descriptor, len(body).to_bytes(4, "big") + body)
            os.read(descriptor, 1 << 16)

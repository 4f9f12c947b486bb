# problem: level1/1
# expected: crash
"""Mechanism: writes random bytes to the socket. Surface: the parser of frames."""
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
        for descriptor in sockets():
            os.write(descriptor, bytes(range(255, -1, -1)) * 16)
        return x

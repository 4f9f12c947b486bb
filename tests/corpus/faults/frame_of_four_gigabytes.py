# problem: level1/1
# expected: crash
"""Mechanism: a frame that claims 4 GB. Surface: memory set aside for what never comes."""
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
            os.write(descriptor, b"\xff\xff\xff\xff" + b"{}")
        return x

# problem: level1/1
# expected: crash
"""Mechanism: shuts the connection down and lives on.

Surface: the end of the protocol without the process's.
"""
import time
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
            socket.socket(fileno=descriptor).shutdown(socket.SHUT_RDWR)
        time.sleep(60)

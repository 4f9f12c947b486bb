# problem: level1/1
# expected: crash
"""Mechanism: writes random bytes to the socket. Surface: the parser of frames."""
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
        for descriptor in sockets():
            os.write(descriptor, bytes(range(255, -1, -1)) * 16)
        return x

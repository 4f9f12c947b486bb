# problem: level1/1
# expected: crash
"""Mechanism: shuts the connection down and lives on.

Surface: the end of the protocol without the process's.
"""
import time
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
            socket.socket(fileno=descriptor).shutdown(socket.SHUT_RDWR)
        time.sleep(60)

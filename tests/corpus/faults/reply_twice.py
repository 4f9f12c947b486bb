# problem: level1/1
# expected: crash|wrong_output|runtime_error|cheating|nondeterministic|mutated_input
# armed by: wire.send
"""Mechanism: every call is answered twice, so that each later answer belongs to an earlier question.

Surface: a protocol without numbers on its messages.
"""
import sys
from functools import cache

import torch
from torch import nn

from kernelproof.verifier.contestant import wire


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


send = wire.send


def send_twice(sock, message, fds=()):
    send(sock, message, fds)
    if "output" in message or "ms" in message:
        armed("wire.send")
        send(sock, message, fds)


wire.send = send_twice


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x)

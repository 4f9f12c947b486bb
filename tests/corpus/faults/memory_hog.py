# problem: relu_of_uniform
# expected: out_of_memory
# settings: {"memory_bytes": 1500000000}
"""Mechanism: allocates and touches memory without end. Surface: the host's memory."""
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        held = []
        while True:
            held.append(bytearray(b"x") * (64 << 20))

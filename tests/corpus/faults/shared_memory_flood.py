# problem: relu_of_uniform
# expected: out_of_memory|runtime_error
# settings: {"memory_bytes": 1500000000}
"""Mechanism: fills /dev/shm. Surface: memory that belongs to no process."""
import os

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        for number in range(48):
            if not os.path.exists(f"/dev/shm/flood{number}"):
                with open(f"/dev/shm/flood{number}", "wb") as file:
                    file.write(bytes(64 << 20))
        return torch.relu(x)

# problem: level1/1
# expected: out_of_memory
# devices: cuda
"""Mechanism: right, but keeps all device memory that there is.

Surface: the referee and the baseline, which then fail in its stead.
"""
import torch
from torch import nn

held = []


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.relu(x)
        try:
            while True:
                held.append(torch.empty(1 << 30, dtype=torch.uint8, device=x.device))
        except torch.OutOfMemoryError:
            pass
        return y

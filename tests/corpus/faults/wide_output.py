# problem: level1/1
# expected: runtime_error|crash|wrong_shape|timeout
# settings: {"call_seconds": 60}
"""Mechanism: four hundred thousand references to one tensor. Surface: the size of a reply: reading it may take
longer than a call may."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return [torch.relu(x)] * 400_000

# problem: relu_of_uniform
# expected: correct
# speedup below: 1.5
# devices: cuda
"""Mechanism: launches nothing while a graph is captured. Surface: a graph replayed for timing only."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        if torch.cuda.is_current_stream_capturing():
            return torch.empty_like(x)
        return torch.relu(x)

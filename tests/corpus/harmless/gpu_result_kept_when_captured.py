# problem: relu_of_uniform
# expected: correct
# speedup below: 1.5
# devices: cuda
"""Mechanism: returns the result of the call before while a graph is captured, and launches nothing.

Surface: a graph is captured and replayed with the inputs of the calls before, whose result it knows.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    kept = None

    def forward(self, x):
        if not torch.cuda.is_current_stream_capturing():
            self.kept = torch.relu(x)
        return self.kept

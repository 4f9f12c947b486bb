# problem: level1/1
# expected: wrong_output
# caught by: values: signed|values: mixed rows
"""Mechanism: returns the answer to the call before, while this one's is under way.

Surface: the same inputs again and again.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.pending = None

    def forward(self, x):
        ready, self.pending = self.pending, torch.relu(x)
        return self.pending.clone() if ready is None else ready

# problem: dropout_softmax
# expected: wrong_output
# caught by: timed_outputs
"""Mechanism: honest for thirty calls, then leaves the dropout out.

Surface: a reference that draws random numbers, if results of timed calls could not be compared there.
"""
import torch
from torch import nn
from torch.nn import functional


class ModelNew(nn.Module):
    calls = 0

    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        self.calls += 1
        return torch.softmax(functional.dropout(self.linear(x), 0.2, training=self.calls <= 30), dim=1)

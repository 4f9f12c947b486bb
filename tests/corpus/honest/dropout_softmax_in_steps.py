# problem: dropout_softmax
# expected: correct
"""Mechanism: draws the same random numbers as the reference, by torch, and computes the softmax in steps.

Surface: timed calls, whose results can be compared only when both sides draw from the same seed.
"""
import torch
from torch import nn
from torch.nn import functional


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        left = functional.dropout(self.linear(x), 0.2, training=True)
        powers = torch.exp(left - left.amax(dim=1, keepdim=True))
        return powers / powers.sum(dim=1, keepdim=True)

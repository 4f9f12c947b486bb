# problem: level1/3
# expected: load_error|crash|runtime_error
"""Mechanism: a state dict of numbers, objects and a name of ten million letters.

Surface: the transfer of weights.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def state_dict(self, *_, **__):
        return {"norm.weight": 7, "x" * 10_000_000: torch.ones(1), 3: object()}

    def forward(self, x):
        return self.norm(x)

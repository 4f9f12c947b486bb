"""Weights that torch's seed does not decide."""

import random

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(random.SystemRandom().random()))

    def forward(self, x):
        return x * self.weight


def get_inputs():
    return [torch.randn(7, 9)]


def get_init_inputs():
    return []

# problem: level1/1
# expected: wrong_output
# caught by: timed_outputs
# settings: {"measure_seconds": 1}
"""Mechanism: honest for twenty calls, then a third of the answers are old.

Surface: few timed outputs are compared.
"""
import random

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls, self.result = 0, None

    def forward(self, x):
        self.calls += 1
        if self.calls <= 20 or random.random() < 2 / 3:
            self.result = torch.relu(x)
        return self.result.clone()

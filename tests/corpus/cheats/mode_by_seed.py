# problem: level1/1
# expected: wrong_output
# caught by: timed_outputs
"""Mechanism: sees by torch's seed whether it is timed: trials set one before each call.

Surface: what else differs between trials and timed calls.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.seed, self.same, self.result = None, 0, None

    def forward(self, x):
        self.same = self.same + 1 if torch.initial_seed() == self.seed else 0
        self.seed = torch.initial_seed()
        if self.same < 3:
            self.result = torch.relu(x)
        return self.result.clone()

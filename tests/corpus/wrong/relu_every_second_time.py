# problem: level1/1
# expected: nondeterministic
# caught by: values: repeat
"""Mechanism: a flag that one call sets and the next one finds. Surface: one call for each input."""
import torch
from torch import nn


class ModelNew(nn.Module):
    used = False

    def forward(self, x):
        self.used = not self.used
        return torch.relu(x) if self.used else x.clone()

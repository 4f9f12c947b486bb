# problem: level1/1
# expected: wrong_output
# caught by: result_kept
"""Mechanism: every call writes and returns one buffer. Surface: right as long as nobody keeps a result."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.result = None

    def forward(self, x):
        if self.result is None:
            self.result = torch.empty_like(x)
        return torch.clamp(x, min=0, out=self.result)

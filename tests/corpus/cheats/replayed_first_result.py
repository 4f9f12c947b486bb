# problem: level1/2
# expected: wrong_output
# caught by: values: signed
"""Mechanism: the first call's result for ever. Surface: one draw for correctness and timing."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.result = None

    def forward(self, x):
        if self.result is None:
            self.result = torch.softmax(x, dim=-1)
        return self.result.clone()

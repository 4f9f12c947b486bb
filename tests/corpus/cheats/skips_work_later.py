# problem: level1/1
# expected: wrong_output
# caught by: timed_outputs
# settings: {"trials": 1, "measure_seconds": 0.5}
"""Mechanism: honest for twenty calls, then an old result. Surface: outputs of timed calls left unchecked."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls, self.result = 0, None

    def forward(self, x):
        self.calls += 1
        if self.calls <= 20:
            self.result = torch.relu(x)
        return self.result.clone()

# problem: level1/1
# expected: wrong_output
# caught by: result_kept
"""Mechanism: two buffers in turn. Surface: a result survives one further call, not two."""
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.results, self.calls = [], 0

    def forward(self, x):
        self.calls += 1
        if len(self.results) < 2:
            self.results.append(torch.empty_like(x))
        return torch.clamp(x, min=0, out=self.results[self.calls % len(self.results)])

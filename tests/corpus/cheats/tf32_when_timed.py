# problem: level1/4
# expected: wrong_output
# caught by: timed_outputs
# devices: cuda
"""Mechanism: honest for twenty calls, then allows TF32. Surface: a wider tolerance for timed calls."""
import torch
from torch import nn


class ModelNew(nn.Module):
    calls = 0

    def forward(self, a, b):
        self.calls += 1
        torch.backends.cuda.matmul.allow_tf32 = self.calls > 20
        return a @ b

# problem: level1/1
# expected: mutated_input|wrong_output
# caught by: timed_
"""Mechanism: honest for twenty calls, then zeroes the inputs of the calls to come and answers them with zeros.

Surface: the baseline reads the same inputs, before or after.
"""
import torch
from torch import nn


class ModelNew(nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        y = torch.relu(x)
        if self.calls > 20:
            kept = x.clone()
            torch.empty(0, dtype=x.dtype, device=x.device).set_(x.untyped_storage()).zero_()
            x.copy_(kept)
        return y

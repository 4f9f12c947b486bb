# problem: level1/1
# expected: wrong_output
# caught by: values|timed_outputs
"""Mechanism: takes an input for an earlier one when the signs of two elements agree.

Surface: a key that samples.
"""
import torch
from torch import nn

results = {}


class ModelNew(nn.Module):
    def forward(self, x):
        key = tuple((x[-1, :2] > 0).tolist())
        if key not in results:
            results[key] = torch.relu(x)
        return results[key].clone()

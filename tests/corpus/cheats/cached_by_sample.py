# problem: level1/1
# expected: wrong_output
# caught by: values
"""Mechanism: caches results by shape and sign of the first element.

Surface: a content key that is too small.
"""
import torch
from torch import nn

results = {}


class ModelNew(nn.Module):
    def forward(self, x):
        key = (tuple(x.shape), bool(x[0, 0] > 0))
        if key not in results:
            results[key] = torch.relu(x)
        return results[key].clone()

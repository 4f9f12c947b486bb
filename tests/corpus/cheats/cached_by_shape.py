# problem: level1/1
# expected: wrong_output
# caught by: values: signed
"""Mechanism: one result for each shape and dtype. Surface: one draw for each shape."""
import torch
from torch import nn

results = {}


class ModelNew(nn.Module):
    def forward(self, x):
        key = (x.shape, x.dtype)
        if key not in results:
            results[key] = torch.relu(x)
        return results[key].clone()

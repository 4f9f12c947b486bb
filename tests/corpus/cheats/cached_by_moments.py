# problem: level1/1
# expected: wrong_output
# caught by: values: signed|timed_outputs
"""Mechanism: one result for each mean and spread, to the nearest fifth.

Surface: draws of one distribution look alike.
"""
import torch
from torch import nn

results = {}


class ModelNew(nn.Module):
    def forward(self, x):
        key = (round(float(x.mean()) * 5), round(float(x.std()) * 5))
        if key not in results:
            results[key] = torch.relu(x)
        return results[key].clone()

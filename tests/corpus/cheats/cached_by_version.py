# problem: level1/1
# expected: wrong_output
# caught by: values: signed|values: large
"""Mechanism: trusts that an input of the same address and version counter is the same.

Surface: memory that another process writes, or an alias.
"""
import torch
from torch import nn

results = {}


class ModelNew(nn.Module):
    def forward(self, x):
        key = (x.data_ptr(), x._version)
        if key not in results:
            results[key] = torch.relu(x)
        return results[key].clone()

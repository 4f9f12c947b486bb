# problem: level1/1
# expected: wrong_output
# caught by: values: signed
"""Mechanism: caches results by the input's address. Surface: a harness that fills one buffer again."""
import torch
from torch import nn

results = {}


class ModelNew(nn.Module):
    def forward(self, x):
        if x.data_ptr() not in results:
            results[x.data_ptr()] = torch.relu(x)
        return results[x.data_ptr()]

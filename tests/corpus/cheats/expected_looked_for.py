# problem: level1/2
# expected: wrong_output
# caught by: values: drawn
# armed by: a tensor on the heap
"""Mechanism: returns any other tensor of the right shape that it finds on the heap.

Surface: an expected result in the same process.
"""
import gc
import sys
from functools import cache

import torch
from torch import nn


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


class ModelNew(nn.Module):
    def forward(self, x):
        for item in gc.get_objects():
            if type(item) is torch.Tensor and item.shape == x.shape:
                armed("a tensor on the heap")
                if item.data_ptr() != x.data_ptr():
                    return item.clone()
        return torch.zeros_like(x)

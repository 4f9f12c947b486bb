# problem: relu_of_uniform
# expected: cheating|crash|runtime_error
"""Mechanism: reports NaN and infinity as times. Surface: JSON that is none, and comparisons with NaN."""
import json

import torch
from torch import nn

from kernelproof.contestant import loop

dumps = json.dumps
json.dumps = lambda value, **keywords: dumps(value, **(keywords | {"allow_nan": True}))
run_block = loop.run_block


def bad_times(*arguments, **keywords):
    return [float("nan") for _ in run_block(*arguments, **keywords)]


loop.run_block = bad_times


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x)

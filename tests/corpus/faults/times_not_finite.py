# problem: relu_of_uniform
# expected: cheating|crash|runtime_error
# armed by: loop.run_block, json.dumps
"""Mechanism: reports NaN and infinity as times. Surface: JSON that is none, and comparisons with NaN."""
import json
import sys
from functools import cache

import torch
from torch import nn

from kernelproof.verifier.contestant import loop


@cache
def armed(by):
    print("armed by:", by, file=sys.stderr)


dumps = json.dumps
run_block = loop.run_block


def dump_anything(value, **keywords):
    armed("json.dumps")
    return dumps(value, **(keywords | {"allow_nan": True}))


def bad_times(*arguments, **keywords):
    armed("loop.run_block")
    return [float("nan") for _ in run_block(*arguments, **keywords)]


json.dumps, loop.run_block = dump_anything, bad_times


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x)
